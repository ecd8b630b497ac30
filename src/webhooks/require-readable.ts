import type { Access } from '../access/types.ts'
import { DomainError } from '../errors.ts'
import { isEventType } from '../events/event.ts'
import { filterByScope } from '../feed/read-feed.ts'
import type { LockedEndpoint } from './commit-change.ts'

/**
 * Checks that a key may read what an endpoint gets, before it repeats, redirects, signs or lists any of it. For an
 * endpoint that gets nothing that is the feed itself.
 * @throws DomainError `scope_missing`
 */
export function requireReadable(
  access: Access,
  { types, withRefunds }: Pick<LockedEndpoint, 'types' | 'withRefunds'>,
): void {
  filterByScope(access, { types: types.filter(isEventType) })
  const namesRefunds = withRefunds && types.some((type) => type.startsWith('discrepancy.'))
  if (namesRefunds) requireScope(access, 'refunds:read')
  if (types.length === 0) requireScope(access, 'payments:read')
}

function requireScope({ scopes }: Access, scope: 'payments:read' | 'refunds:read'): void {
  if (scopes.includes(scope)) return
  const detail = `This key has no scope ${scope}, which the events of this endpoint require`
  throw new DomainError('scope_missing', detail)
}
