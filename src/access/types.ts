import type { ApiKey } from './keys.ts'

/** The authenticated key of a request, and the accounts it may access. */
export type Access = ApiKey & {
  /** The accounts that the key covers; every statement on merchant data is limited to them. */
  merchants: readonly string[]
  /** The id of the current request, recorded in the audit log. */
  requestId: string
  /** It is the key of a person, which `name` names, and not an API key. */
  isPerson?: true
}

declare module 'hono' {
  interface ContextVariableMap {
    /** Set by `authenticate` for every handler behind it. */
    access: Access
  }
}
