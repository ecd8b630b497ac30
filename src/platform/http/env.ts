import type { HttpBindings } from '@hono/node-server'
import type { RefusalCode } from '../../errors.ts'

/** What the framework's context holds for every request. */
export type HttpEnv = {
  Bindings: HttpBindings
  Variables: {
    requestId: string
    /** The code of the problem in the response; undefined before that and for other responses. */
    refusal: RefusalCode | undefined
    /** The request would write nothing: its refusal is no refused write. */
    isDryRun: true | undefined
  }
}
