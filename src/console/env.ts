import type { HttpBindings } from '@hono/node-server'
import type { Context as HttpContext } from 'hono'
import type { Access } from '../access/types.ts'
import type { HttpEnv } from '../http/problems.ts'

export type ConsoleEnv = {
  Bindings: HttpBindings
  Variables: HttpEnv['Variables'] & {
    /** The person: what they do is recorded under their name. */
    access: Access
    /** Whether the person may still do what the request was let in for: answers that take long ask again. */
    isStillAllowed: () => Promise<boolean>
    /** The fields of the form that was sent. */
    form: FormFields | undefined
  }
}

/** The fields of a form, by name; of a repeated field the last. */
export type FormFields = Readonly<Record<string, string>>

export type ConsoleRequest = HttpContext<ConsoleEnv>
