import type { HttpBindings } from '@hono/node-server'
import type { Context as HttpContext } from 'hono'
import type { Access, Role } from '../access/types.ts'
import type { HttpEnv } from '../http/problems.ts'

/** A signed-in person's session. */
export type ConsoleSession = {
  id: string
  personId: string
  /** The person's name, as it stands in the audit log. */
  name: string
  roles: readonly Role[]
  /** The person proved who they are within the last 15 minutes. */
  isRecent: boolean
}

export type ConsoleEnv = {
  Bindings: HttpBindings
  Variables: HttpEnv['Variables'] & {
    /** The person: what they do is recorded under their name. */
    access: Access
    /** Undefined on the pages that need none. */
    session: ConsoleSession | undefined
    /** Makes the token that every form of this session carries; each one differs. */
    makeFormToken: () => string
    /** Whether the person may still do what the request was let in for: answers that take long ask again. */
    isStillAllowed: () => Promise<boolean>
    /** The fields of the form that was sent. */
    form: FormFields | undefined
    /** What the person had typed on this page before they had to sign in again; see `readDraft`. */
    draft: KeptDraft | undefined
  }
}

/** A form that was not carried out, because the person had to sign in first. */
export type KeptDraft = { action: string; fields: FormFields }

/** The fields of a form, by name; of a repeated field the last. */
export type FormFields = Readonly<Record<string, string>>

export type ConsoleRequest = HttpContext<ConsoleEnv>
