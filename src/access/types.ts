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

/** Whether a row of `actors` has a scope, in SQL: a key by its own, a person by the roles. */
export function hasScopeSql(alias: string, scope: Scope): string {
  const roles = ROLES.filter((role) => SCOPES_OF_ROLES[role].includes(scope))
  return `('${scope}' = any(${alias}.scopes) or ${alias}.roles && '{${roles.join()}}')`
}

/** Lists the scopes of several roles, each once. Unknown roles, of a later release, have none. */
export function listScopes(roles: readonly string[]): Scope[] {
  const known = ROLES.filter((role) => roles.includes(role))
  return [...new Set(known.flatMap((role) => SCOPES_OF_ROLES[role]))]
}

/** Who makes a request, and what they may do. */
export type Access = Omit<ApiKey, 'merchants'> & {
  /** The accounts that are covered; every statement on merchant data is limited to them. */
  merchants: readonly string[]
  /** It covers all accounts, also those that are added later. */
  coversAll: boolean
  requestId: string
  /** Where the request came from; undefined for a person, whom no network binds. */
  address?: string
  /** The scopes and roles that the request was let in with: `lockActor` asks for them again. */
  required: Set<Scope | Role>
  /** It is a person, whom `name` names, and not an API key. */
  isPerson?: true
  /** The session of a person's request: its end ends the request. */
  sessionId?: string
}

declare module 'hono' {
  interface ContextVariableMap {
    /** Set by `authenticate` for every handler behind it. */
    access: Access
  }
}
