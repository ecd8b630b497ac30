import type { HttpBindings } from '@hono/node-server'
import type { Access } from '../access/authenticate.ts'
import type { RefusalCode } from '../errors.ts'

/** What every request carries through the app. */
export type AppEnv = {
  Bindings: HttpBindings
  Variables: {
    requestId: string
    access: Access
    /** Why it is answered with a problem, once it is. */
    refusal: RefusalCode | undefined
  }
}
