import { z } from '@hono/zod-openapi'
import type { Context } from '../context.ts'
import { toIso } from '../db/client.ts'
import { Time } from '../http/input.ts'
import type { Position } from '../http/page.ts'
import type { TransactionKey } from '../payments/apply.ts'

const Ipn = z.object({
  at: Time,
  type: z.literal('ipn'),
  kind: z.string(),
  deliveries: z.int(),
  lastReceivedAt: Time,
  signature: z.string(),
  address: z.string(),
})

const Query = z.object({
  at: Time,
  type: z.literal('query'),
  outcome: z.string().openapi({ description: 'answered, rejected, unavailable or unknown' }),
  code: z.string().nullable(),
  message: z.string().nullable(),
  httpStatus: z.int().nullable(),
  durationMs: z.int(),
  bodySha256: z.string().openapi({ description: 'SHA-256 of the bytes sent, hexadecimal' }),
})

const Change = z.object({
  at: Time,
  type: z.literal('change'),
  paymentId: z.string().nullable(),
  field: z.string(),
  before: z.string().nullable(),
  after: z.string().nullable(),
  cause: z.string(),
})

/** One thing that happened to a transaction. */
export const TimelineEntry = z
  .discriminatedUnion('type', [Ipn, Query, Change])
  .openapi('TimelineEntry')

export type TimelineRow = {
  position: Position
  entry: z.infer<typeof TimelineEntry>
}

type Row = {
  at: string
  id: string
  type: 'ipn' | 'query' | 'change'
  facts: Record<string, unknown>
}

/**
 * Everything that happened to a transaction, oldest first: each notification (repeats counted on it),
 * each query, each change. One more than `limit`, which says that there is a next page.
 */
export async function readTimeline(
  ctx: Context,
  { merchantCode, transactionId }: TransactionKey,
  limit: number,
  after: Position | undefined,
): Promise<TimelineRow[]> {
  const rows = await ctx.sql<Row[]>`
    select at::text, id, type, facts from (
      select first_received_at as at, '1-' || lpad(id::text, 19, '0') as id, 'ipn' as type,
        json_build_object('kind', kind, 'deliveries', deliveries, 'lastReceivedAt', last_received_at::text,
          'signature', verdict, 'address', address) as facts
      from ipn_events where merchant_code = ${merchantCode} and transaction_id = ${transactionId}
      union all
      select sent_at, '2-' || lpad(id::text, 19, '0'), 'query',
        json_build_object('outcome', outcome, 'code', code, 'message', message, 'httpStatus', http_status,
          'durationMs', duration_ms, 'bodySha256', encode(body_sha256, 'hex'))
      from gateway_calls where merchant_code = ${merchantCode} and transaction_id = ${transactionId}
      union all
      select at, '3-' || lpad(id::text, 19, '0'), 'change',
        json_build_object('paymentId', payment_id, 'field', field, 'before', before, 'after', after,
          'cause', cause)
      from changes where merchant_code = ${merchantCode} and transaction_id = ${transactionId}
    ) as everything
    where ${after ? ctx.sql`(at, id) > (${after.time}::timestamptz, ${after.id})` : ctx.sql`true`}
    order by everything.at, id limit ${limit + 1}`
  return rows.map(({ at, id, type, facts }) => ({
    position: { time: at, id, merchantCode },
    entry: TimelineEntry.parse({ ...showTimes(facts), type, at: toIso(at) }),
  }))
}

function showTimes(facts: Record<string, unknown>): Record<string, unknown> {
  const { lastReceivedAt } = facts
  return typeof lastReceivedAt === 'string'
    ? { ...facts, lastReceivedAt: toIso(lastReceivedAt) }
    : facts
}
