import type { HttpBindings } from '@hono/node-server'
import type { Access } from '../access/authenticate.ts'

/** What every request carries through the app. */
export type AppEnv = {
  Bindings: HttpBindings
  Variables: { requestId: string; access: Access }
}
