import type { Config } from '../config/config.ts'
import type { Context } from '../context.ts'
import { byTransaction, type TransactionKey } from '../db/transaction-key.ts'
import { NAMES_REFUND_SQL } from '../discrepancies/kinds.ts'
import { listShownMembers, type ShownMember } from '../gateway/stored-body.ts'
import type { Position } from '../http/list.ts'
import { hideSecretsInText, maskCardText } from '../platform/crypto/masking.ts'
import { byKey } from '../platform/postgres/by-key.ts'
import { countRowsRead } from '../platform/postgres/list-page.ts'
import { toIso } from '../platform/postgres/row-set.ts'
import type { Sql } from '../platform/postgres/types.ts'
import { selectKey, selectRefundNotifications } from './due.ts'

/** A message of the gateway as it is stored: masked, its hash hidden, and cut to what a person reads. */
export type ReceivedMessage = {
  /** Names it among those of its type. */
  id: string
  /** ISO 8601: when it was first received, or when the call was made that it answers. */
  at: string
  type: 'notification' | 'query' | 'refund'
  /** Of a notification that can be read. */
  members: ShownMember[] | undefined
  /** Everything else, as text; empty when the answer had no content of its own. */
  text: string
}

type Row = { id: string; at: string; type: ReceivedMessage['type']; text: string | null }

/** Characters of a message. */
const MAX_TEXT = 4_000

/**
 * Reads what the gateway sent about a transaction, newest first: notifications and answers, with `withRefunds` also
 * those about its refunds.
 * @returns `limit` messages at most
 */
export async function readMessages(
  { sql }: Pick<Context, 'sql'>,
  transaction: TransactionKey,
  withRefunds: boolean,
  limit: number,
): Promise<ReceivedMessage[]> {
  const key = selectKey(sql, transaction)
  // A literal: for a parameter the planner expects many rows.
  const most = sql.unsafe(String(limit))
  const rows = await sql<Row[]>`
    select id::text, at::text, type, left(text, ${MAX_TEXT}) as text from (
      select first_received_at as at, id, 'notification' as type, body as text
      from ${key} cross join lateral (
        select * from ipn_events as e where ${sql.unsafe(byTransaction('e'))} desc, e.first_received_at desc
        fetch first ${most} rows with ties) as e
      union all
      select sent_at, id, 'query', concat_ws(E'\n', received, jsonb_pretty(answer))
      from ${key} cross join lateral (
        select * from gateway_calls as g where ${sql.unsafe(byTransaction('g'))} desc, g.sent_at desc
        fetch first ${most} rows with ties) as g
      ${withRefunds ? selectOfRefunds(sql, transaction, key) : sql``}
    ) as messages
    order by messages.at desc, messages.id desc limit ${limit}`
  return rows.map(({ id, at, type, text }) => {
    const members = type === 'notification' ? listShownMembers(text ?? '') : undefined
    const hidden = members ? '' : hideSecretsInText(maskCardText(text ?? ''))
    return { id, at: toIso(at), type, members, text: hidden }
  })
}

function selectOfRefunds(sql: Sql, transaction: TransactionKey, key: ReturnType<typeof selectKey>) {
  return sql`
    union all
    select first_received_at, id, 'notification', body
    from (${selectRefundNotifications(sql, transaction)}) as e
    union all
    select a.recorded_at, a.id, 'refund', a.received
    from ${key} cross join lateral (
      select merchant_code, refund_id from refunds as r where ${sql.unsafe(byTransaction('r'))} offset 0
    ) as r cross join lateral (
      select * from refund_attempts as a
      where ${sql.unsafe(byKey('a', ['merchant_code', 'refund_id'], 'r'))} offset 0) as a`
}

/** What a page of a timeline is read by. */
export type EntriesRequest = {
  config: Pick<Config, 'RETENTION_DAYS'>
  transaction: TransactionKey
  withRefunds: boolean
  limit: number
  after: Position | undefined
}

/** Characters of a received answer in an entry. */
const MAX_SHOWN = 2_000

const HAS_OTHER_READING = `exists (
  select from (select reading from ipn_events as o where ${byKey('o', ['merchant_code', 'text_hash'], 'e')} offset 0) as o
  where o.reading <> e.reading)`

/** Of a row of `ipn_events` as `e`, without its message, which is in its body. */
const IPN_FACTS = `json_build_object('kind', kind, 'code', code, 'amount', amount::text, 'paymentId', payment_id,
  'requestId', request_id, 'deliveries', deliveries, 'lastReceivedAt', last_received_at::text, 'signature', verdict,
  'recut', reading > 1 or ${HAS_OTHER_READING}, 'address', address)`

/**
 * Builds a query for the entries of a timeline, as `at`, `id`, `type` and `facts`, in no order. Of notifications, queries
 * and changes, of which a transaction can have any number, it selects no more than a page needs, oldest first; of the
 * others, which follow from its refunds, all.
 */
export function selectEntries(sql: Sql, request: EntriesRequest) {
  const { transaction, withRefunds, after } = request
  const key = selectKey(sql, transaction)
  return sql`
    select first_received_at as at, '1-' || lpad(id::text, 19, '0') as id, 'ipn' as type,
      ${sql.unsafe(IPN_FACTS)} as facts
    from ${key} cross join lateral (
      ${selectOldest(sql, request, { table: 'ipn_events', time: 'first_received_at', rank: 1 })}) as e
    union all
    select sent_at, '2-' || lpad(id::text, 19, '0'), 'query',
      json_build_object('outcome', outcome, 'code', code, 'message', message, 'httpStatus', http_status,
        'durationMs', duration_ms, 'bodyHmac', encode(body_hmac, 'hex'),
        'received', left(received, ${MAX_SHOWN}))
    from ${key} cross join lateral (
      ${selectOldest(sql, request, { table: 'gateway_calls', time: 'sent_at', rank: 2 })}) as g
    union all
    select at, '3-' || lpad(id::text, 19, '0'), 'change',
      json_build_object('paymentId', payment_id, 'refundId', refund_id, 'field', field, 'before', before, 'after', after,
        'cause', cause)
    from ${key} cross join lateral (
      ${selectOldest(sql, request, { table: 'changes', time: 'at', rank: 3 })}) as c
    union all
    select at, '5-' || lpad(id::text, 19, '0'), 'discrepancy',
      json_build_object('kind', kind, 'paymentId', payment_id, 'refundId', refund_id, 'ours', ours,
        'theirs', theirs)
    from ${key} cross join lateral (
      select * from discrepancies as d where ${sql.unsafe(byTransaction('d'))} offset 0) as d
    where ${withRefunds} or not ${sql.unsafe(NAMES_REFUND_SQL)}
    ${after ? sql`` : selectRemoved(sql, request)}
    ${withRefunds ? selectRefundSteps(sql, transaction) : sql``}`
}

/** Rows of one kind: the table, the column of their time, and the digit that their ids begin with. */
type Source = { table: 'ipn_events' | 'gateway_calls' | 'changes'; time: string; rank: number }

/**
 * Selects the oldest rows of the transaction behind a position, by an index that goes on with the time. Rows of the same
 * time as the last one are selected, too: their order is that of their ids. The row of columns is where the scan begins.
 */
function selectOldest(
  sql: Sql,
  { after, limit, withRefunds }: EntriesRequest,
  { table, time, rank }: Source,
) {
  const at = sql.unsafe(`o.${time}`)
  const behind = after
    ? sql`(o.transaction_id, ${at}) >= (k.transaction_id, ${after.time}::timestamptz)
        and (${at}, ${sql.unsafe(`'${rank}-' || lpad(o.id::text, 19, '0')`)}) > (${after.time}::timestamptz, ${after.id}) and`
    : sql``
  const readable =
    table === 'changes' && !withRefunds
      ? sql`o.refund_id is null and o.field <> 'external_refund' and`
      : sql``
  return sql`
    select * from ${sql(table)} as o where ${behind} ${readable} ${sql.unsafe(byTransaction('o'))}, ${at}
    fetch first ${sql.unsafe(String(countRowsRead(limit)))} rows with ties`
}

/** Of more notifications the deliveries are counted only where some may have been deleted. */
const MAX_COUNTED = 100

/**
 * Counters and changes are never deleted: they show that notifications and queries once stored were deleted
 * since. The oldest are deleted first, so the first query of which a change is known decides.
 */
function selectRemoved(sql: Sql, { transaction, config }: EntriesRequest) {
  const key = selectKey(sql, transaction)
  return sql`
    union all
    select t.first_seen_at, '0-', 'removed', json_build_object('deliveries', greatest(0, t.ipn_count - kept.n))
    from ${key} cross join lateral (
      select * from transactions as t where ${sql.unsafe(byTransaction('t'))} limit 1
    ) as t cross join lateral (
      select t.first_seen_at < now() - ${config.RETENTION_DAYS} * interval '1 day' as is_old
    ) as age cross join lateral (
      select coalesce(sum(deliveries), 0) as n, count(*) as rows from (
        select deliveries from ipn_events as e where ${sql.unsafe(byTransaction('e'))}
        limit case when not is_old then ${sql.unsafe(String(MAX_COUNTED))} end) as e
    ) as kept
    where (t.ipn_count > kept.n and (is_old or kept.rows < ${sql.unsafe(String(MAX_COUNTED))})) or exists (
      select from (
        select call_id from changes as c where c.call_id is not null and ${sql.unsafe(byTransaction('c'))}, c.at
        limit 1) as c
      where not exists (select from gateway_calls g where g.id = c.call_id))`
}

/** Notifications and attempts of the transaction's refunds. */
function selectRefundSteps(sql: Sql, transaction: TransactionKey) {
  return sql`
    union all
    select first_received_at, '1-' || lpad(id::text, 19, '0'), 'ipn',
      ${sql.unsafe(IPN_FACTS)}
    from (${selectRefundNotifications(sql, transaction)}) as e
    union all
    select a.recorded_at, '4-' || lpad(a.id::text, 19, '0'), 'refund_attempt',
      json_build_object('refundId', a.refund_id, 'outcome', a.outcome, 'code', a.code, 'message', a.message,
        'httpStatus', a.http_status, 'durationMs', a.duration_ms,
        'bodyHmac', encode(a.body_hmac, 'hex'),
        'received', left(a.received, ${MAX_SHOWN}))
    from ${selectKey(sql, transaction)} cross join lateral (
      select merchant_code, refund_id from refunds as r where ${sql.unsafe(byTransaction('r'))} offset 0
    ) as r cross join lateral (
      select * from refund_attempts as a
      where ${sql.unsafe(byKey('a', ['merchant_code', 'refund_id'], 'r'))} offset 0) as a`
}
