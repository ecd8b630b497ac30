import type { Scope } from '../access/keys.ts'
import type { Role } from '../access/types.ts'
import { DomainError } from '../errors.ts'
import type { ConsoleRequest } from './env.ts'
import { can, useView } from './view.ts'

/** @throws DomainError `scope_missing` */
export function requireScope(c: ConsoleRequest, scope: Scope): void {
  if (!can(scope)) throw new DomainError('scope_missing', `Your roles lack ${scope}`)
  c.get('access').required.add(scope)
}

/** Whether the person has a role, e.g. `admin` for what only admins do. */
export function hasRole(role: Role): boolean {
  return useView().person?.roles.includes(role) ?? false
}

/** @throws DomainError `scope_missing` */
export function requireRole(c: ConsoleRequest, role: Role): void {
  if (!hasRole(role)) throw new DomainError('scope_missing', `You are not ${role}`)
  c.get('access').required.add(role)
}
