import { z } from '@hono/zod-openapi'
import type { Context } from '../context.ts'
import type { TransactionKey } from '../db/transaction-key.ts'
import { Time } from '../platform/http/fields.ts'
import type { Position } from '../platform/http/page.ts'
import { byKey } from '../platform/postgres/by-key.ts'
import { toIso } from '../platform/postgres/iso-time.ts'
import type { Sql } from '../platform/postgres/types.ts'
import { selectRefundNotifications } from './select-refund-notifications.ts'

const Ipn = z.strictObject({
  at: Time,
  type: z.literal('ipn'),
  kind: z.string(),
  deliveries: z.int(),
  lastReceivedAt: Time,
  signature: z.string(),
  recut: z.boolean().openapi({
    description:
      'The hash of the notification was received with other values as well; at most one such reading is trusted',
  }),
  address: z.string(),
})

/** Of an answer at most 64 KiB are stored, card data and tokens masked. */
const Received = z.string().nullable().openapi({
  description:
    'The first 2,000 characters of what was received beside the payments, the code and the message, as JSON: `members` of an answer, or the `text` of one that cannot be read',
})

const Query = z.strictObject({
  at: Time,
  type: z.literal('query'),
  outcome: z.string().openapi({ description: 'answered, rejected, unavailable or unknown' }),
  code: z.string().nullable(),
  message: z.string().nullable(),
  httpStatus: z.int().nullable(),
  durationMs: z.int(),
  bodySha256: z.string().openapi({ description: 'SHA-256 of the bytes sent, hexadecimal' }),
  received: Received,
})

const Change = z.strictObject({
  at: Time,
  type: z.literal('change'),
  paymentId: z.string().nullable(),
  refundId: z.string().nullable(),
  field: z.string(),
  before: z.string().nullable(),
  after: z.string().nullable(),
  cause: z.string(),
})

const RefundAttempt = z.strictObject({
  at: Time,
  type: z.literal('refund_attempt'),
  refundId: z.string(),
  outcome: z.string().nullable(),
  code: z.string().nullable(),
  message: z.string().nullable(),
  httpStatus: z.int().nullable(),
  durationMs: z.int().nullable(),
  bodySha256: z.string(),
  received: Received.openapi({
    description: 'The first 2,000 characters of what was received, as JSON',
  }),
})

const Discrepancy = z.strictObject({
  at: Time,
  type: z.literal('discrepancy'),
  kind: z.string(),
  paymentId: z.string().nullable(),
  refundId: z.string().nullable(),
  ours: z.string(),
  theirs: z.string(),
})

const Removed = z.strictObject({
  at: Time,
  type: z.literal('removed'),
  deliveries: z.int().openapi({
    description:
      'How many deliveries were among the notifications and queries deleted after `RETENTION_DAYS`',
  }),
})

/** One entry of a transaction's timeline. */
export const TimelineEntry = z
  .discriminatedUnion('type', [Ipn, Query, Change, RefundAttempt, Discrepancy, Removed])
  .openapi('TimelineEntry', {
    example: {
      at: '2026-11-21T09:33:03.213Z',
      type: 'ipn',
      kind: 'payment',
      deliveries: 1,
      lastReceivedAt: '2026-11-21T09:33:03.213Z',
      signature: 'verified',
      recut: false,
      address: '127.0.0.1',
    },
  })

export type TimelineRow = {
  position: Position
  entry: z.infer<typeof TimelineEntry>
}

type Row = {
  at: string
  id: string
  type: z.infer<typeof TimelineEntry>['type']
  facts: Record<string, unknown>
}

/** Characters of a received answer in an entry. */
const MAX_SHOWN = 2_000

const KEY = ['merchant_code', 'transaction_id']

/** The transaction's key, as `k` for `byKey`. */
function selectKey(sql: Sql, { merchantCode, transactionId }: TransactionKey) {
  return sql`(
    select ${merchantCode}::text as merchant_code, ${transactionId}::text as transaction_id) as k`
}

/**
 * Reads everything that happened to a transaction, oldest first: each notification (with a count of its
 * deliveries), each query, each change, and with `withRefunds` each step of its refunds. An entry of type
 * `removed` comes first if older entries have been deleted.
 * @returns `limit` + 1 entries if there is a next page
 */
export async function readTimeline(
  { sql }: Pick<Context, 'sql'>,
  transaction: TransactionKey,
  withRefunds: boolean,
  limit: number,
  after: Position | undefined,
): Promise<TimelineRow[]> {
  const { merchantCode } = transaction
  const key = selectKey(sql, transaction)
  const rows = await sql<Row[]>`
    select at::text, id, type, facts from (
      select first_received_at as at, '1-' || lpad(id::text, 19, '0') as id, 'ipn' as type,
        json_build_object('kind', kind, 'deliveries', deliveries, 'lastReceivedAt', last_received_at::text,
          'signature', verdict, 'recut', recut, 'address', address) as facts
      from ${key} cross join lateral (
        select * from ipn_events as e where ${sql.unsafe(byKey('e', KEY, 'k'))} offset 0) as e
      union all
      select sent_at, '2-' || lpad(id::text, 19, '0'), 'query',
        json_build_object('outcome', outcome, 'code', code, 'message', message, 'httpStatus', http_status,
          'durationMs', duration_ms, 'bodySha256', encode(body_sha256, 'hex'),
          'received', left(received, ${MAX_SHOWN}))
      from ${key} cross join lateral (
        select * from gateway_calls as g where ${sql.unsafe(byKey('g', KEY, 'k'))} offset 0) as g
      union all
      select at, '3-' || lpad(id::text, 19, '0'), 'change',
        json_build_object('paymentId', payment_id, 'refundId', refund_id, 'field', field, 'before', before, 'after', after,
          'cause', cause)
      from ${key} cross join lateral (
        select * from changes as c where ${sql.unsafe(byKey('c', KEY, 'k'))} offset 0) as c
      where (refund_id is null and field <> 'external_refund') or ${withRefunds}
      ${selectRemoved(sql, key)}
      ${withRefunds ? selectRefundSteps(sql, transaction, key) : sql``}
    ) as entries
    where ${after ? sql`(at, id) > (${after.time}::timestamptz, ${after.id})` : sql`true`}
    order by entries.at, id limit ${limit + 1}`
  return rows.map(({ at, id, type, facts }) => ({
    position: { time: at, id, merchantCode },
    entry: TimelineEntry.parse({ ...formatTimes(facts), type, at: toIso(at) }),
  }))
}

/**
 * Counters and changes are never deleted: they show that notifications and queries once stored were deleted
 * since.
 */
function selectRemoved(sql: Sql, key: ReturnType<typeof selectKey>) {
  return sql`
    union all
    select t.first_seen_at, '0-', 'removed', json_build_object('deliveries', t.ipn_count - kept.n)
    from ${key} cross join lateral (
      select * from transactions as t where ${sql.unsafe(byKey('t', KEY, 'k'))} limit 1
    ) as t cross join lateral (
      select coalesce(sum(deliveries), 0) as n from (
        select deliveries from ipn_events as e where ${sql.unsafe(byKey('e', KEY, 'k'))} offset 0) as e
    ) as kept
    where t.ipn_count > kept.n or exists (
      select from (
        select call_id from changes as c where ${sql.unsafe(byKey('c', KEY, 'k'))} offset 0) as c
      where c.call_id is not null
        and not exists (select from gateway_calls g where g.id = c.call_id))`
}

/** Notifications, attempts and discrepancies of the transaction's refunds. */
function selectRefundSteps(
  sql: Sql,
  transaction: TransactionKey,
  key: ReturnType<typeof selectKey>,
) {
  return sql`
    union all
    select first_received_at, '1-' || lpad(id::text, 19, '0'), 'ipn',
      json_build_object('kind', kind, 'deliveries', deliveries, 'lastReceivedAt', last_received_at::text,
        'signature', verdict, 'recut', recut, 'address', address)
    from (${selectRefundNotifications(sql, transaction)}) as e
    union all
    select a.recorded_at, '4-' || lpad(a.id::text, 19, '0'), 'refund_attempt',
      json_build_object('refundId', a.refund_id, 'outcome', a.outcome, 'code', a.code, 'message', a.message,
        'httpStatus', a.http_status, 'durationMs', a.duration_ms, 'bodySha256', encode(a.body_sha256, 'hex'),
        'received', left(a.received, ${MAX_SHOWN}))
    from ${key} cross join lateral (
      select merchant_code, refund_id from refunds as r where ${sql.unsafe(byKey('r', KEY, 'k'))} offset 0
    ) as r cross join lateral (
      select * from refund_attempts as a
      where ${sql.unsafe(byKey('a', ['merchant_code', 'refund_id'], 'r'))} offset 0) as a
    union all
    select at, '5-' || lpad(id::text, 19, '0'), 'discrepancy',
      json_build_object('kind', kind, 'paymentId', payment_id, 'refundId', refund_id, 'ours', ours,
        'theirs', theirs)
    from ${key} cross join lateral (
      select * from discrepancies as d where ${sql.unsafe(byKey('d', KEY, 'k'))} offset 0) as d`
}

function formatTimes(facts: Record<string, unknown>): Record<string, unknown> {
  const { lastReceivedAt } = facts
  return typeof lastReceivedAt === 'string'
    ? { ...facts, lastReceivedAt: toIso(lastReceivedAt) }
    : facts
}
