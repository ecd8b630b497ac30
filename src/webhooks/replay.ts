import { randomUUID } from 'node:crypto'
import pLimit from 'p-limit'
import type { z } from 'zod'
import { recordWrite } from '../access/audit.ts'
import { EVENT_NAMES_REFUND_SQL } from '../discrepancies/kinds.ts'
import { DomainError } from '../errors.ts'
import type { EventRow } from '../events/event.ts'
import { isWanted } from '../feed/read-feed.ts'
import { refuseCursor } from '../feed/view.ts'
import { createRateLimiter, toSeconds } from '../platform/concurrency/rate-limiter.ts'
import type { Tx } from '../platform/postgres/types.ts'
import { type ChangeContext, changeEndpoint, ENDPOINT_PATH } from './changes.ts'
import {
  type EndpointRequest,
  filterOf,
  readEndpoint,
  requireReadable,
  type StoredEndpoint,
} from './endpoints.ts'
import type { TestEvent } from './schemas.ts'
import { openSecrets, type SendResult, type WebhooksContext } from './send.ts'

/**
 * Delivers all events after a given one again, in order; 0 stands for all events that are kept. It sets the cursor
 * back and deletes the later retries, which would arrive before older events of their transaction.
 * @throws DomainError as `changeEndpoint` does, `cursor_expired` if events after it were deleted or lost in a
 *   restore, `invalid_request` if it is beyond the end of the feed
 */
export async function replayEvents(
  ctx: ChangeContext,
  request: EndpointRequest,
  after: number,
): Promise<void> {
  await changeEndpoint(ctx, request, `POST ${ENDPOINT_PATH}/replay`, async (tx) => {
    const start = await findStart(tx, after)
    await tx`
      update webhook_endpoints set cursor = least(cursor, ${start}::bigint),
        ahead = array(select id from unnest(ahead) as id where id <= ${start}::bigint order by id)
      where id = ${request.id}`
    await tx`
      delete from webhook_retries where endpoint_id = ${request.id} and event_id > ${start}::bigint`
  })
}

/** Returns the cursor for a replay after an event; for 0 it is the start of what is kept, as in the feed. */
async function findStart(tx: Tx, after: number): Promise<number> {
  const [feed] = await tx<{ start: number; end: number }[]>`
    select start, greatest(start, (select max(id) from events)) as "end"
    from (select coalesce((select removed_up_to from event_removals), 0) as start) as kept`
  const { start = 0, end = 0 } = feed ?? {}
  if (after === 0) return start
  const fromOldest = 'send "0" to begin with the oldest event that is kept'
  if (after < start) {
    const detail = `Events after this one were deleted, or lost when the database was restored: ${fromOldest}`
    throw new DomainError('cursor_expired', detail)
  }
  if (after > end) throw refuseCursor('after', `; ${fromOldest}`)
  return after
}

/**
 * Delivers an event again, whether it was accepted or waits as a retry. It is due at once unless an earlier event of
 * its transaction waits, and later ones wait for it.
 * @returns 0 for an event that the endpoint has not reached yet: it is sent in its turn, and not again
 * @throws DomainError as `changeEndpoint` does, `webhook_endpoint_disabled`, and `webhook_delivery_not_found` if the
 *   endpoint does not get the event, or the event was deleted
 */
export async function replayDelivery(
  ctx: ChangeContext,
  request: EndpointRequest,
  eventId: string,
): Promise<number> {
  const operation = `POST ${ENDPOINT_PATH}/deliveries/{eventId}/replay`
  return await changeEndpoint(ctx, request, operation, async (tx, endpoint) => {
    requireEnabled(request, endpoint)
    const [event] = await tx<EventRow[]>`
      select merchant_code as "merchantCode", type, ${tx.unsafe(EVENT_NAMES_REFUND_SQL)} as "namesRefund"
      from events where id = ${eventId} for key share`
    if (!event || !endpoint.owner || !isWanted(event, filterOf(endpoint.owner, endpoint))) {
      const detail = `The endpoint has no delivery of an event ${eventId} that is still kept`
      throw new DomainError('webhook_delivery_not_found', detail)
    }
    const { count } = await tx`
      with again as materialized (
        select e.id as endpoint_id, ev.id, ev.merchant_code, ev.transaction_id
        from webhook_endpoints as e join events as ev on ev.id = ${eventId}
        where e.id = ${request.id} and (ev.id <= e.cursor or ev.id = any(e.ahead)))
      insert into webhook_retries (endpoint_id, event_id, merchant_code, transaction_id)
      select endpoint_id, id, merchant_code, transaction_id from again
      on conflict (event_id, endpoint_id) do update
        set due_at = excluded.due_at, attempts = 0, failing_since = null`
    return count
  })
}

/**
 * Makes all events due at once that have failed and were not accepted since, as after a repair of the receiver.
 * @throws DomainError as `changeEndpoint` does, and `webhook_endpoint_disabled`
 */
export async function replayFailed(ctx: ChangeContext, request: EndpointRequest): Promise<number> {
  const operation = `POST ${ENDPOINT_PATH}/deliveries/replay`
  return await changeEndpoint(ctx, request, operation, async (tx, endpoint) => {
    requireEnabled(request, endpoint)
    const { count } = await tx`
      update webhook_retries set due_at = now(), attempts = 0, failing_since = null
      where endpoint_id = ${request.id} and attempts > 0`
    return count
  })
}

function requireEnabled({ id }: EndpointRequest, { isDisabled }: StoredEndpoint): void {
  if (!isDisabled) return
  const detail = `Endpoint ${id} is disabled: POST ${ENDPOINT_PATH.replace('{endpointId}', id)}/enable sends what waits`
  throw new DomainError('webhook_endpoint_disabled', detail)
}

/** Test events of an account, per process: enough to try every endpoint, too few to scan a network. */
const TEST_RATE = { perMinute: 20, burst: 20 }

export const createTestLimits = () => ({ tests: pLimit(8), rates: createRateLimiter() })
type TestLimits = ReturnType<typeof createTestLimits>

/**
 * Sends a signed event of the type `endpoint.test`, also to a disabled endpoint, whose state does not change.
 * @throws DomainError `webhook_endpoint_not_found`, `scope_missing`, `rate_limited`
 */
export async function testEndpoint(
  ctx: WebhooksContext,
  request: EndpointRequest,
  { tests, rates }: TestLimits,
): Promise<SendResult> {
  const { db, log, encryption, webhooks } = ctx
  const { access, id: endpointId } = request
  const row = await readEndpoint(db.sql, request)
  requireReadable(access, row)
  const { merchantCode, url, apiVersion } = row
  const secrets = openSecrets(encryption, row)
  requireRate(merchantCode, { tests, rates })
  return await tests(async () => {
    const operation = `POST ${ENDPOINT_PATH}/test`
    await recordWrite(db.sql, log, access, { operation, merchantCode, objectId: endpointId })
    const id = `test_${randomUUID()}`
    const at = new Date(row.now)
    const event: z.infer<typeof TestEvent> = {
      id,
      type: 'endpoint.test',
      apiVersion,
      timestamp: at.toISOString(),
      transactionId: 'test',
      data: { endpointId },
    }
    const body = JSON.stringify(event)
    return await webhooks.sendTest({ url, secrets, id, at, body }, ctx.lifecycle.givingUp)
  })
}

function requireRate(merchantCode: string, { tests, rates }: TestLimits): void {
  if (tests.activeCount === tests.concurrency) {
    const detail = 'Too many test events are in progress; try again in a second'
    throw new DomainError('rate_limited', detail, { retryAfterS: 1 })
  }
  const { ok, waitMs } = rates.take(merchantCode, TEST_RATE)
  if (ok) return
  const detail = `An account may send ${TEST_RATE.perMinute} test events a minute`
  throw new DomainError('rate_limited', detail, { retryAfterS: toSeconds(waitMs) })
}
