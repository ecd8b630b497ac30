import { narrowMerchants } from '../access/authenticate.ts'
import type { Access } from '../access/types.ts'
import { DomainError } from '../errors.ts'
import { EVENT_SCOPES, EVENT_TYPES, type EventType, isEventType } from '../events/event.ts'
import type { FeedFilter } from './types.ts'

/**
 * Returns the filter for the events that a key may read, or for the requested types.
 * @throws DomainError `scope_missing` when a requested type needs a scope that the key lacks
 */
export function filterByScope(
  access: Access,
  {
    types,
    merchantCode,
  }: { types?: readonly EventType[] | undefined; merchantCode?: string | undefined },
): FeedFilter {
  const merchants = narrowMerchants(access, merchantCode)
  const missing = types?.find((type) => !access.scopes.includes(EVENT_SCOPES[type]))
  if (missing) {
    const detail = `This key has no scope ${EVENT_SCOPES[missing]}, which ${missing} requires`
    throw new DomainError('scope_missing', detail)
  }
  const readable = EVENT_TYPES.filter(isEventType).filter((type) =>
    access.scopes.includes(EVENT_SCOPES[type]),
  )
  const withRefunds = access.scopes.includes('refunds:read')
  return { merchants, types: types ?? readable, withRefunds }
}
