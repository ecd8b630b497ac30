import { randomUUID } from 'node:crypto'
import type { LimitFunction } from 'p-limit'
import type { z } from 'zod'
import { recordWrite } from '../access/audit.ts'
import type { Context } from '../context.ts'
import { DomainError } from '../errors.ts'
import type { TestEvent } from './declare.ts'
import { type Asked, endpointNotFound } from './find.ts'
import { sealedFor } from './register.ts'
import type { Sent } from './send.ts'

const TESTING = 'POST /v1/webhook-endpoints/{endpointId}/test'

/** Test events under way at once in this process. */
export const TESTS_AT_ONCE = 8

/**
 * Sends a signed event of the type `endpoint.test` to one endpoint now, also to a disabled one, and tells
 * what came of it. It is kept nowhere, and says nothing about whether the endpoint fails.
 * @param tests those under way: as many as it lets run
 * @throws DomainError `webhook_endpoint_not_found`, `rate_limited` when too many are under way
 */
export async function testEndpoint(
  ctx: Context,
  { access, holders, id: endpointId }: Asked,
  tests: LimitFunction,
): Promise<Sent> {
  const { sql, sealer, webhooks } = ctx
  const [row] = await sql<{ merchantCode: string; url: string; secret: Buffer; now: number }[]>`
    select merchant_code as "merchantCode", url, secret,
      (extract(epoch from clock_timestamp()) * 1000)::float8 as now from webhook_endpoints
    where id = ${endpointId} and merchant_code = any(${[...holders]})`
  if (!row) throw endpointNotFound(endpointId)
  const { merchantCode, url } = row
  const secret = sealer.open(row.secret, sealedFor(endpointId))
  if (tests.activeCount === tests.concurrency) {
    const detail = 'Too many test events are under way; try again'
    throw new DomainError('rate_limited', detail, { retryAfterS: 1 })
  }
  return await tests(async () => {
    await recordWrite(sql, access, { operation: TESTING, merchantCode, objectId: endpointId })
    const id = `test_${randomUUID()}`
    const at = new Date(row.now)
    const event: z.infer<typeof TestEvent> = {
      id,
      type: 'endpoint.test',
      timestamp: at.toISOString(),
      transactionId: 'test',
      data: { endpointId },
    }
    return await webhooks.send({ url, secret, id, at, body: JSON.stringify(event) }, ctx.givingUp)
  })
}
