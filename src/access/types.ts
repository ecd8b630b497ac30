import type { ApiKey, Scope } from './keys.ts'

export const ROLES = ['viewer', 'agent', 'approver', 'operator', 'admin'] as const
export type Role = (typeof ROLES)[number]

const READ = ['payments:read', 'refunds:read'] as const
const OPERATE = ['ops', 'webhooks:write', 'cards:read'] as const

/** The scopes of each role. Admins also manage people and the reasons for refunds, which no scope covers. */
export const SCOPES_OF_ROLES: Readonly<Record<Role, readonly Scope[]>> = {
  viewer: READ,
  agent: [...READ, 'refunds:write'],
  approver: [...READ, 'refunds:approve'],
  operator: [...READ, ...OPERATE],
  admin: [...READ, 'refunds:write', 'refunds:approve', ...OPERATE],
}

/** Whether a row of `actors` has a scope, in SQL: a key has it itself, a person through a role. */
export function hasScopeSql(alias: string, scope: Scope): string {
  const roles = ROLES.filter((role) => SCOPES_OF_ROLES[role].includes(scope))
  return `('${scope}' = any(${alias}.scopes) or ${alias}.roles && '{${roles.join()}}')`
}

/** Lists the scopes of several roles. Unknown roles, which a later release may have stored, have none. */
export function listScopes(roles: readonly string[]): Scope[] {
  const known = ROLES.filter((role) => roles.includes(role))
  return [...new Set(known.flatMap((role) => SCOPES_OF_ROLES[role]))]
}

export type Access = Omit<ApiKey, 'merchants'> & {
  /** The covered accounts. Every statement on merchant data is limited to them. */
  merchants: readonly string[]
  /** Whether all accounts are covered, including those that are added later. */
  coversAll: boolean
  requestId: string
  /** Where the request came from; undefined for a person, as people are not bound to networks. */
  address?: string
  /** The scopes and roles that the request was admitted with. `lockActor` requires them again. */
  required: Set<Scope | Role>
  /** Set for a person, who is called `name`; left out for an API key. */
  isPerson?: true
  /** The session of a person: its end ends the request. */
  sessionId?: string
}

declare module 'hono' {
  interface ContextVariableMap {
    /** Set by `authenticate` for every handler behind it. */
    access: Access
  }
}
