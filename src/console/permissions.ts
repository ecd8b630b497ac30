import type { Scope } from '../access/keys.ts'
import type { Role } from '../access/types.ts'
import { DomainError } from '../errors.ts'
import type { ConsoleRequest } from './env.ts'

/** Whether the person may do what this scope covers: decides which buttons are shown. */
export function hasScope(c: ConsoleRequest, scope: Scope): boolean {
  return c.get('access').scopes.includes(scope)
}

/** @throws DomainError `scope_missing` */
export function requireScope(c: ConsoleRequest, scope: Scope): void {
  if (!hasScope(c, scope)) throw new DomainError('scope_missing', `Your roles lack ${scope}`)
  c.get('access').required.add(scope)
}

/** Whether the person has a role, e.g. `admin` for what only admins do. */
export function hasRole(c: ConsoleRequest, role: Role): boolean {
  return c.get('session')?.roles.includes(role) ?? false
}

/** @throws DomainError `scope_missing` */
export function requireRole(c: ConsoleRequest, role: Role): void {
  if (!hasRole(c, role)) throw new DomainError('scope_missing', `You are not ${role}`)
  c.get('access').required.add(role)
}

/** A person has to sign in again before the request is carried out. */
export class SignInAgainError extends Error {}

/**
 * Call it before access is granted.
 * @throws SignInAgainError when the last sign-in is more than 15 minutes ago
 */
export function requireRecentSignIn(c: ConsoleRequest): void {
  if (!c.get('session')?.isRecent) throw new SignInAgainError()
}
