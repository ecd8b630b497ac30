import { randomUUID } from 'node:crypto'
import type { LimitFunction } from 'p-limit'
import type { z } from 'zod'
import { recordWrite } from '../access/audit.ts'
import { DomainError } from '../errors.ts'
import { type RateLimiter, toSeconds } from '../platform/concurrency/rate-limiter.ts'

import type { WebhooksContext } from './context.ts'
import {
  type EndpointRequest,
  endpointNotFound,
  type LockedEndpoint,
  requireReadable,
} from './find-endpoints.ts'
import type { TestEvent } from './openapi.ts'
import { openSecrets, type StoredSecrets } from './secrets.ts'
import type { SendResult } from './sender.ts'

const OPERATION = 'POST /v1/webhook-endpoints/{endpointId}/test'

/** Concurrent test events of this process. */
export const MAX_CONCURRENT_TESTS = 8

/** Test events of one account and process: enough to try every endpoint, too few to search a network. */
export const TEST_RATE = { perMinute: 20, burst: 20 }

/** What limits the test events of a process. */
export type TestLimits = { tests: LimitFunction; rates: RateLimiter }

/**
 * Sends a signed event of the type `endpoint.test` to an endpoint at once, even a disabled one, and returns the
 * result. The event is not stored, and its result does not change the state of the endpoint.
 * @throws DomainError `webhook_endpoint_not_found`, `scope_missing` when the key may not read what the endpoint gets,
 *   `rate_limited` when too many tests are running, or were sent in this minute
 */
export async function testEndpoint(
  ctx: WebhooksContext,
  { access, owners, id: endpointId }: EndpointRequest,
  { tests, rates }: TestLimits,
): Promise<SendResult> {
  const { sql, log, encryption, webhooks } = ctx
  const [row] = await sql<Row[]>`
    select merchant_code as "merchantCode", url, types, secret,
      with_refunds as "withRefunds",
      case when previous_secret_until > now() then previous_secret end as "previousSecret",
      (extract(epoch from clock_timestamp()) * 1000)::float8 as now from webhook_endpoints
    where id = ${endpointId} and merchant_code = any(${[...owners]})`
  if (!row) throw endpointNotFound(endpointId)
  const { merchantCode, url } = row
  requireReadable(access, row)
  const secrets = openSecrets(encryption, endpointId, row)
  if (tests.activeCount === tests.concurrency) {
    const detail = 'Too many test events are in progress; try again in a second'
    throw new DomainError('rate_limited', detail, { retryAfterS: 1 })
  }
  const { ok, waitMs } = rates.take(merchantCode, TEST_RATE)
  if (!ok) {
    const detail = `An account may send ${TEST_RATE.perMinute} test events a minute`
    throw new DomainError('rate_limited', detail, { retryAfterS: toSeconds(waitMs) })
  }
  return await tests(async () => {
    await recordWrite(sql, log, access, {
      operation: OPERATION,
      merchantCode,
      objectId: endpointId,
    })
    const id = `test_${randomUUID()}`
    const at = new Date(row.now)
    const event: z.infer<typeof TestEvent> = {
      id,
      type: 'endpoint.test',
      timestamp: at.toISOString(),
      transactionId: 'test',
      data: { endpointId },
    }
    return await webhooks.sendTest(
      { url, secrets, id, at, body: JSON.stringify(event) },
      ctx.givingUp,
    )
  })
}

type Row = StoredSecrets & { url: string; now: number } & Pick<
    LockedEndpoint,
    'merchantCode' | 'types' | 'withRefunds'
  >
