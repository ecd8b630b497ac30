import type { ApiKey, Scope } from './keys.ts'

export const ROLES = ['viewer', 'agent', 'approver', 'operator', 'admin'] as const

export type Role = (typeof ROLES)[number]

const READ = ['payments:read', 'refunds:read'] as const

const OPERATE = ['ops', 'webhooks:write', 'cards:read'] as const

/** What each role may do. Admins also manage people and the reasons for refunds, which no scope covers. */
export const SCOPES_OF_ROLES: Readonly<Record<Role, readonly Scope[]>> = {
  viewer: READ,
  agent: [...READ, 'refunds:write'],
  approver: [...READ, 'refunds:approve'],
  operator: [...READ, ...OPERATE],
  admin: [...READ, 'refunds:write', 'refunds:approve', ...OPERATE],
}

/** Lists the scopes of several roles, each once. Unknown roles, of a later release, have none. */
export function listScopes(roles: readonly string[]): Scope[] {
  const known = ROLES.filter((role) => roles.includes(role))
  return [...new Set(known.flatMap((role) => SCOPES_OF_ROLES[role]))]
}

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
