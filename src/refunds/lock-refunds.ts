import { randomUUID } from 'node:crypto'
import { externalRefunds, refunds } from '../db/schema.ts'
import type { TransactionKey } from '../db/transaction-key.ts'
import { byExpressions, byKey } from '../platform/postgres/by-key.ts'
import { listColumns } from '../platform/postgres/row-set.ts'
import { pipeline } from '../platform/postgres/transaction.ts'
import type { Sql, Tx } from '../platform/postgres/types.ts'
import { REQUEST_ID, selectKey, selectRefundNotifications } from '../transactions/due.ts'
import { isBefore, NOTHING_SINCE, selectCounters } from './event-order.ts'
import { countExternal } from './external.ts'
import { type Ages, type RefundRow, startDraft } from './lifecycle.ts'
import type {
  ExternalDraft,
  ExternalRow,
  LockedPayment,
  LockedRefunds,
  RefundNotification,
} from './types.ts'

const OF_TEXT = byKey('o', ['merchant_code', 'text_hash'], 'e')

/** One signed text settles a refund once, however it is cut. */
const IS_HANDLED = `exists (
  select from (select * from ipn_events as o where ${OF_TEXT} offset 0) as o
  where o.id <> e.id and o.handled_at is not null and o.code is not null and o.request_id = e.request_id
    and o.payment_id is not distinct from e.payment_id and o.amount is not distinct from e.amount)`

/**
 * Whether growth has shown an external refund that was read from the same signed text as the notification, on whichever
 * payment: only one of the two can have happened.
 */
function isOtherShown(notification: string, merchant: string): string {
  return `exists (
    select from ipn_events n
      join ipn_events r on r.merchant_code = n.merchant_code and r.text_hash = n.text_hash and r.id <> n.id
      join external_refunds o on o.merchant_code = r.merchant_code
        and o.request_id in (r.request_id, lower(r.request_id))
        and o.payment_id = r.payment_id and o.amount = r.amount
    where n.id = ${notification} and n.merchant_code = ${merchant} and o.matched and o.outcome is null)`
}

/** Bounds what is read of a flood of notifications; the longest of documented ones has 600 characters. */
const MAX_BODY = 8_192

const OF_PAYMENT = ['merchant_code', 'payment_id']
const OF_REQUEST = byExpressions(
  ['o.merchant_code', 'lower(o.request_id)'],
  ['e.merchant_code', 'lower(e.request_id)'],
)

/** When a trusted reading first notified the failure of the refund that `e` names. */
const FAILED_AT = `(
  select min(o.first_received_at) from (select * from ipn_events as o where ${OF_REQUEST} offset 0) as o
  where o.kind = 'refund' and o.verdict = 'verified' and o.reading = 1
    and (o.request_id = e.request_id or e.request_id ~* '${REQUEST_ID.source}')
    and o.payment_id = e.payment_id and o.amount = e.amount
    and o.code ~ '^-?[1-9][0-9]{0,8}$' and o.code not in ('9', '99'))`

type NotificationRow = Omit<RefundNotification, 'externalId' | 'details'>

/** Reads the unhandled refund notifications of a transaction, oldest first. */
async function readUnhandledNotifications(
  tx: Tx,
  key: TransactionKey,
  asOf: string | null,
): Promise<NotificationRow[]> {
  return await tx<NotificationRow[]>`
    select e.id, e.request_id as "requestId", e.payment_id as "paymentId", e.amount, e.code,
      e.verdict = 'verified' as verified, e.reading, e.documented,
      ${tx.unsafe(IS_HANDLED)} as "handledBefore", ${tx.unsafe(isOtherShown('e.id', 'e.merchant_code'))} as "isOtherShown",
      ${tx.unsafe(FAILED_AT)}::text as "failedAt",
      case when length(e.body) <= ${MAX_BODY} then e.body end as body,
      e.first_received_at::text as "receivedAt",
      coalesce(${tx.unsafe(NOTHING_SINCE)} and e.first_received_at < t.as_of, false) as "beforeSnapshot",
      coalesce(e.first_received_at < (
        select p.first_as_of from payments as p where ${tx.unsafe(byKey('p', OF_PAYMENT, 'e'))} limit 1
      ), false) as "beforeFirst"
    from ${selectKey(tx, key)} cross join ${selectCounters(tx, asOf)}
      cross join (${selectRefundNotifications(tx, key, { unhandled: true })}) as e
    order by e.id`
}

/**
 * Locks the payments, then the refunds of a transaction. The caller holds the transaction's row.
 * @param asOf when the current snapshot's query was sent (database time); null without one
 */
export async function lockRefunds(
  tx: Tx,
  key: TransactionKey,
  asOf: string | null,
): Promise<LockedRefunds> {
  // Payments are locked first.
  const [payments, refunds, notifications, external] = await pipeline(
    lockPaymentRows(tx, key, asOf),
    lockRefundRows(tx, key, asOf),
    readUnhandledNotifications(tx, key, asOf),
    lockExternalRefunds(tx, key),
  )
  const locked = {
    payments: payments.map((row) => ({ ...row, ...NOT_COUNTED })),
    drafts: refunds.map(startDraft),
    external: external.map((row): ExternalDraft => ({ before: row, now: row, changes: [] })),
    notifications: notifications.map((one) => ({
      ...one,
      externalId: randomUUID(),
      details: {},
    })),
    freed: [],
  }
  countExternal(locked)
  return locked
}

const NOT_COUNTED = {
  external: [],
  released: [],
  explainedAtFirst: '0',
  returning: '0',
  unmatchedDelta: undefined,
}

const OF_TRANSACTION = ['merchant_code', 'transaction_id']

type PaymentRow = Omit<LockedPayment, keyof typeof NOT_COUNTED>

const OF_NOTIFIED = byKey('f', OF_PAYMENT, 'e')

/**
 * The amounts of verified successes for which nothing is reserved: undocumented readings, because the gateway may have
 * added a member, and documented ones whose amount cannot be read (`0`, which fits any growth). Unexplained growth that
 * fits one of them settles no refund of ours. What people entered after one was notified explains as much of it and of
 * later ones: by amount, and one entry for each if the amount of any cannot be read.
 */
const UNRESERVED = `select coalesce(e.amount, 0)::text from (
    select *, coalesce(sum(amount) over (order by id desc), 0) as total,
      count(*) over (order by id desc) as told,
      count(*) filter (where amount is null) over (order by id desc) as unreadable from (
      select distinct on (coalesce(e.request_id, e.id::text), e.amount) *,
        case when request_id ~* '${REQUEST_ID.source}' then request_id::uuid end as refund_id
      from (select * from ipn_events as e where e.kind = 'refund' and ${byKey('e', OF_PAYMENT, 'p')} offset 0) as e
      where e.verdict = 'verified'
        and case when e.documented then e.amount is null and e.code = '0'
          else e.amount > 0 and coalesce(e.code, '0') = '0' end
      order by coalesce(e.request_id, e.id::text), e.amount, e.id) as e
    where not exists (select from (select * from external_refunds as f where ${OF_NOTIFIED} offset 0) as f
        where f.matched and lower(f.request_id) = lower(e.request_id) and f.amount = coalesce(e.amount, f.amount))
      and (select true from refunds as r where ${byKey('r', ['merchant_code', 'refund_id'], 'e')} limit 1) is null) as e
  cross join lateral (
    select count(*) as entries, sum(f.amount) as entered from (
      select * from external_refunds as f where ${OF_NOTIFIED} offset 0) as f
    where f.matched and f.source = 'person' and f.first_seen_at > e.first_received_at) as f
  where e.total > coalesce(entered, -1) or (e.unreadable > 0 and e.told > entries)`

async function lockPaymentRows(
  tx: Tx,
  { merchantCode, transactionId }: TransactionKey,
  asOf: string | null,
): Promise<PaymentRow[]> {
  return await tx<PaymentRow[]>`
    select payment_id as "paymentId", status, payment_method as "paymentMethod", missing, amount,
      refunded_amount as "refundedNow", refunded_at_first as "refundedAtFirst",
      counted_status as "countedStatus", counted_amount as "countedAmount",
      counted_refunded as "countedRefunded",
      array(${tx.unsafe(UNRESERVED)}) as unreserved,
      not missing and unlisted_since is null and not unreadable
        and as_of = coalesce(${asOf}::timestamptz, as_of) as listed
    from (select ${merchantCode}::text as merchant_code, ${transactionId}::text as transaction_id) as k
    cross join lateral (
      select * from payments as p where ${tx.unsafe(byKey('p', OF_TRANSACTION, 'k'))} for update
    ) as p
    order by payment_id`
}

async function lockExternalRefunds(
  tx: Tx,
  { merchantCode, transactionId }: TransactionKey,
): Promise<ExternalRow[]> {
  return await tx<ExternalRow[]>`
    select ${tx.unsafe(listColumns(externalRefunds, 'f'))},
      f.outcome is null and not f.matched
        and ${tx.unsafe(isOtherShown('f.ipn_event_id', 'f.merchant_code'))} as "isOtherReading",
      coalesce(f.notified_at < p.first_as_of, false) as "notifiedBeforeFirst",
      (extract(epoch from clock_timestamp() - f.first_seen_at) * 1000)::float8 as "sinceSeenMs"
    from (select ${merchantCode}::text as merchant_code, ${transactionId}::text as transaction_id) as k
    cross join lateral (
      select merchant_code, payment_id, first_as_of, first_seen_at from payments as p
      where ${tx.unsafe(byKey('p', OF_TRANSACTION, 'k'))} offset 0
    ) as p cross join lateral (
      select * from external_refunds as f
      where ${tx.unsafe(byKey('f', ['merchant_code', 'payment_id'], 'p'))} for update
    ) as f
    order by coalesce(f.notified_at, f.first_seen_at), f.request_id, f.amount`
}

/** Where the ages of a refund begin. */
const SINCE: Record<keyof Ages, string> = {
  sinceRequestedMs: 'coalesce(approved_at, requested_at)',
  sinceFirstSentMs: 'first_sent_at',
  sinceSentMs: 'last_sent_at',
  sinceUpdatedMs: 'updated_at',
  sinceRefusedMs: 'refused_at',
  sinceFailureNotifiedMs: 'failure_notified_at',
  sinceNoGrowthMs: 'no_growth_since',
  sinceReturnSeenMs: 'return_seen_at',
  sinceResolvedMs: 'resolved_at',
}
const AGES = Object.entries(SINCE)
  .map(
    ([age, time]) => `(extract(epoch from clock_timestamp() - ${time}) * 1000)::float8 as "${age}"`,
  )
  .join(', ')

const BEFORE_RESTORE = `coalesce(requested_at < (
  select case when stopped_at is null then restored_at else 'infinity' end from installation), false)`

/** Whether the database was restored since a refund was requested. */
export async function isBeforeRestore(
  sql: Sql | Tx,
  { requestedAt }: Pick<RefundRow, 'requestedAt'>,
): Promise<boolean> {
  const [row] = await sql<{ is: boolean }[]>`
    select ${sql.unsafe(BEFORE_RESTORE)} as is from (select ${requestedAt}::timestamptz as requested_at) as k`
  return row?.is === true
}

const BEFORE_SNAPSHOT = `
  coalesce(case when approved_at is null then ${isBefore('requested')} else ${isBefore('approved')} end, false)
    as "requestedBeforeSnapshot",
  coalesce(${isBefore('first_sent')}, true) as "sentBeforeSnapshot",
  coalesce(${isBefore('refused')}, false) as "refusedBeforeSnapshot",
  coalesce(${isBefore('failure_notified')}, false) as "failureBeforeSnapshot"`

/** Locks and reads the refunds of a transaction, oldest first. Its row and its payments are locked before. */
export async function lockRefundRows(
  tx: Tx,
  key: TransactionKey,
  asOf: string | null,
): Promise<RefundRow[]> {
  return await tx<RefundRow[]>`
    select ${tx.unsafe(listColumns(refunds, 'r'))}, ${tx.unsafe(AGES)},
      clock_timestamp()::text as "lockedAt",
      (extract(epoch from due_at - now()) * 1000)::float8 as "dueInMs",
      ${tx.unsafe(BEFORE_RESTORE)} as "requestedBeforeRestore", t.want, ${tx.unsafe(BEFORE_SNAPSHOT)},
      coalesce(success_notified_at < (
        select p.first_as_of from payments as p where ${tx.unsafe(byKey('p', OF_PAYMENT, 'r'))} limit 1
      ), false) as "notifiedBeforeFirst"
    from ${selectKey(tx, key)} cross join ${selectCounters(tx, asOf)} cross join lateral (
      select * from refunds as r where ${tx.unsafe(byKey('r', OF_TRANSACTION, 'k'))} for update
    ) as r
    order by requested_at, refund_id`
}
