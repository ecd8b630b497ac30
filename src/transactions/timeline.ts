import type { z } from '@hono/zod-openapi'
import type { Context } from '../context.ts'
import type { TransactionKey } from '../db/transaction-key.ts'
import { NAMES_REFUND_SQL } from '../discrepancies/kinds.ts'
import { readStoredMessage } from '../gateway/read-stored-message.ts'
import { maskCardText } from '../platform/crypto/mask-cards.ts'
import type { Position } from '../platform/http/page.ts'
import { byKey } from '../platform/postgres/by-key.ts'
import { toIso } from '../platform/postgres/iso-time.ts'
import type { Sql } from '../platform/postgres/types.ts'
import { selectKey } from './select-key.ts'
import { selectRefundNotifications } from './select-refund-notifications.ts'
import { TimelineEntry } from './timeline-schema.ts'

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

/** Of a row of `ipn_events`, without its message, which is in its body. */
const IPN_FACTS = `json_build_object('kind', kind, 'code', code, 'amount', amount::text, 'paymentId', payment_id,
  'requestId', request_id, 'deliveries', deliveries, 'lastReceivedAt', last_received_at::text, 'signature', verdict,
  'recut', recut, 'address', address)`

/**
 * Reads everything that happened to a transaction, oldest first: each notification (with a count of its
 * deliveries), each query, each change, each discrepancy, and with `withRefunds` each step of its refunds and each
 * discrepancy that names one. An entry of type
 * `removed` comes first if older entries have been deleted.
 * @returns `limit` + 1 entries if there is a next page
 */
export async function readTimeline(
  ctx: Pick<Context, 'config' | 'sql'>,
  transaction: TransactionKey,
  withRefunds: boolean,
  limit: number,
  after: Position | undefined,
): Promise<TimelineRow[]> {
  const { sql } = ctx
  const { merchantCode } = transaction
  const key = selectKey(sql, transaction)
  const rows = await sql<Row[]>`
    select at::text, id, type, facts from (
      select first_received_at as at, '1-' || lpad(id::text, 19, '0') as id, 'ipn' as type,
        ${sql.unsafe(IPN_FACTS)} as facts
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
      union all
      select at, '5-' || lpad(id::text, 19, '0'), 'discrepancy',
        json_build_object('kind', kind, 'paymentId', payment_id, 'refundId', refund_id, 'ours', ours,
          'theirs', theirs)
      from ${key} cross join lateral (
        select * from discrepancies as d where ${sql.unsafe(byKey('d', KEY, 'k'))} offset 0) as d
      where ${withRefunds} or not ${sql.unsafe(NAMES_REFUND_SQL)}
      ${selectRemoved(sql, key)}
      ${withRefunds ? selectRefundSteps(sql, transaction, key) : sql``}
    ) as entries
    where ${after ? sql`(at, id) > (${after.time}::timestamptz, ${after.id})` : sql`true`}
    order by entries.at, id limit ${limit + 1}`
  const messages = await readMessages(ctx, merchantCode, rows)
  return rows.map(({ at, id, type, facts }) => {
    const message = type === 'ipn' ? { message: messages.get(id) ?? null } : {}
    return {
      position: { time: at, id, merchantCode },
      entry: TimelineEntry.parse({ ...formatTimes(facts), ...message, type, at: toIso(at) }),
    }
  })
}

/** Reads the messages of the notifications on a page, by the ids of their entries: only these bodies are parsed. */
async function readMessages(
  { config, sql }: Pick<Context, 'config' | 'sql'>,
  merchantCode: string,
  rows: readonly Row[],
): Promise<Map<string, string>> {
  const ids = rows.flatMap(({ type, id }) => (type === 'ipn' ? [Number(id.slice(2))] : []))
  if (ids.length === 0) return new Map()
  const found = await sql<{ id: string; body: string }[]>`
    select '1-' || lpad(e.id::text, 19, '0') as id, e.body
    from (select value::bigint as id from json_array_elements_text(${JSON.stringify(ids)}::json)) as k
    cross join lateral (
      select id, body from ipn_events as e
      where merchant_code = ${merchantCode} and ${sql.unsafe(byKey('e', ['id'], 'k'))} limit 1) as e`
  return new Map(
    found.flatMap(({ id, body }) => {
      const message = readStoredMessage(config.GATEWAY_FIELD_PREFIX, body)
      return message === null ? [] : [[id, maskCardText(message)] as const]
    }),
  )
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

/** Notifications and attempts of the transaction's refunds. */
function selectRefundSteps(
  sql: Sql,
  transaction: TransactionKey,
  key: ReturnType<typeof selectKey>,
) {
  return sql`
    union all
    select first_received_at, '1-' || lpad(id::text, 19, '0'), 'ipn',
      ${sql.unsafe(IPN_FACTS)}
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
      where ${sql.unsafe(byKey('a', ['merchant_code', 'refund_id'], 'r'))} offset 0) as a`
}

function formatTimes(facts: Record<string, unknown>): Record<string, unknown> {
  const { lastReceivedAt } = facts
  return typeof lastReceivedAt === 'string'
    ? { ...facts, lastReceivedAt: toIso(lastReceivedAt) }
    : facts
}
