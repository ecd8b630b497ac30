import { type Access, narrowMerchants } from '../access/authenticate.ts'
import { DomainError } from '../errors.ts'
import { EVENT_SCOPES, type EventType } from '../events/event.ts'
import type { FeedFilter } from './read.ts'
import { isEventType } from './view.ts'

/**
 * What a key is told of: the types its scopes let it read, or those of them it names.
 * @throws DomainError `scope_missing` when it names one that it may not read
 */
export function chooseEvents(
  access: Access,
  {
    types,
    merchantCode,
  }: { types?: readonly EventType[] | undefined; merchantCode?: string | undefined },
): FeedFilter {
  const merchants = narrowMerchants(access, merchantCode)
  const missing = types?.find((type) => !access.scopes.includes(EVENT_SCOPES[type]))
  if (missing) {
    const detail = `This key has no scope ${EVENT_SCOPES[missing]}, which ${missing} asks for`
    throw new DomainError('scope_missing', detail)
  }
  const readable = Object.keys(EVENT_SCOPES)
    .filter(isEventType)
    .filter((type) => access.scopes.includes(EVENT_SCOPES[type]))
  return { merchants, types: types ?? readable }
}
