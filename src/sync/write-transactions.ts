import type { Config } from '../config/config.ts'
import { transactions } from '../db/schema.ts'
import { byTransaction, formatTransactionKey, type TransactionKey } from '../db/transaction-key.ts'
import { byKey } from '../platform/postgres/by-key.ts'
import { addMs } from '../platform/postgres/clock.ts'
import { pickColumns, rowSet } from '../platform/postgres/row-set.ts'
import type { Tx } from '../platform/postgres/types.ts'
import { afterGap, notifyTransactionChanged } from '../transactions/due.ts'
import { scheduleNext } from './schedule.ts'
import { type ClaimEnd, NAMES, type SummarisedItem } from './types.ts'

const COLUMNS = {
  ...pickColumns(transactions, 'merchantCode', 'transactionId', 'state', 'final', 'asOf'),
  ...pickColumns(transactions, 'paidAmount', 'refundedAmount', 'duplicatePayment'),
  ...pickColumns(transactions, 'attempts', 'polls', 'lastError', ...NAMES),
  unapplied: 'boolean',
  changed: 'boolean',
  paid: 'boolean',
  known: 'boolean',
  kind: 'text',
  inMs: 'float8',
  withRefunds: 'boolean',
}

const ORDER = ['merchant_code', 'order_id']

/**
 * Writes the summaries of transactions whose rows the caller holds, and ends their claims, with one update of each
 * row. Waiting readers are woken after the commit.
 *
 * - A transaction that becomes final, or changes while final, is queried once more after `RECONCILE_FINAL_FOR_MS`.
 * - When its claim ends, it is due again by the schedule or by its refunds, whichever comes first.
 * - It is not abandoned if it is final or has a due refund.
 * - A request during the query leads to one more query, no sooner than the gap of a burst.
 * @returns how each claim ends, in the order given; undefined for a claim that continues
 */
export async function writeTransactions(
  tx: Tx,
  config: Config,
  items: readonly SummarisedItem[],
): Promise<(ClaimEnd | undefined)[]> {
  const given = items.flatMap((item) => describeRow(config, item))
  if (given.length === 0) return []
  const reconcileMs = config.RECONCILE_FINAL_FOR_MS
  const later = tx`clock.later`
  const reconcileAt = tx`case
    when not s.final and t.reconcile_at < 'infinity' then null
    when s.final and (s.changed or not t.final) and ${reconcileMs > 0} then ${later}
    else t.reconcile_at end`
  const givenUp = tx`want = claimed and s.kind = 'abandon' and s.refund_due_at is null`
  const abandoned = tx`${givenUp} and not coalesce(s.final, t.final)`
  const rows = await tx<(ClaimEnd & TransactionKey)[]>`
    update transactions as t set
      order_id = s.order_id, merchant_txn_id = s.merchant_txn_id, currency = s.currency,
      expected_amount = s.expected_amount, order_verified = s.order_verified,
      state = coalesce(s.state, t.state), final = coalesce(s.final, t.final),
      paid_amount = coalesce(s.paid_amount, t.paid_amount),
      refunded_amount = coalesce(s.refunded_amount, t.refunded_amount),
      duplicate_payment = coalesce(s.duplicate_payment, t.duplicate_payment),
      order_check_due = t.order_check_due or s.has_other_of_order,
      unapplied_entries = coalesce(s.unapplied, t.unapplied_entries),
      as_of = coalesce(s.as_of, t.as_of),
      first_paid_at = case when s.paid then coalesce(t.first_paid_at, clock.at) else t.first_paid_at end,
      version = case when s.changed then version + 1 else version end,
      updated_at = case when s.changed then clock.at else updated_at end,
      unconfirmed = t.unconfirmed and not coalesce(s.known, false),
      reconcile_at = case when (${abandoned} or ${givenUp} and s.attempts > 0) and ${reconcileMs > 0}
        then coalesce(${reconcileAt}, ${later}) else ${reconcileAt} end,
      lease_id = case when s.kind is null then t.lease_id end,
      attempts = case when s.kind is null then t.attempts when want = claimed then s.attempts else 0 end,
      polls = case when s.kind is null then t.polls when want = claimed then s.polls else 0 end,
      last_error = case when s.kind is null then t.last_error else s.last_error end,
      abandoned_at = case when s.kind is null then t.abandoned_at when ${abandoned} then clock.at end,
      due_at = case when s.kind is null then t.due_at else least(s.refund_due_at, case
        when want <> claimed or s.kind = 'query_now'
          then ${tx.unsafe(afterGap('clock.at'))}
        else ${tx.unsafe(addMs('clock.at', 's.in_ms'))} end) end
    from ${findRows(tx, given)}, unnest(
      array[now()], array[now() + ${reconcileMs}::float8 * interval '1 millisecond']) as clock (at, later)
    where t.ctid = s.place
    returning t.merchant_code as "merchantCode", t.transaction_id as "transactionId", s.last_error as "lastError",
      t.due_at is not null as "dueAgain", t.order_check_due as "orderCheckDue", case
        when want <> claimed then 'query_now'
        when s.kind = 'abandon' and t.due_at is not null then 'query_later'
        when s.kind = 'abandon' and t.final then 'idle'
        else s.kind end as next`
  const written = new Map(rows.map((row) => [formatTransactionKey(row), row]))
  return items.map(({ key, summary, ended }) => {
    if (!summary && !ended) return undefined
    notifyTransactionChanged(tx, key)
    const row = written.get(formatTransactionKey(key))
    if (!row) throw new Error('a transaction was not written')
    const { next, dueAgain, orderCheckDue, lastError } = row
    return ended && { next, dueAgain, orderCheckDue, lastError }
  })
}

function describeRow(
  config: Config,
  { key, row, summary, ended, snapshot, refunds }: SummarisedItem,
) {
  if (!summary && !ended) return []
  const { merchantCode, transactionId } = key
  const { orderId, merchantTxnId, currency, expectedAmount, orderVerified } = row
  // The gateway has answered about it.
  const known = ended?.end.kind === 'open' || ended?.end.kind === 'final'
  const step =
    ended &&
    scheduleNext(ended.end, { ...ended.claim, ...(known && { unconfirmed: false }) }, config)
  return [
    // The own members come first: members after a spread are added slowly, one by one.
    {
      merchantCode,
      transactionId,
      known,
      orderId,
      merchantTxnId,
      currency,
      expectedAmount,
      orderVerified,
      asOf: summary && snapshot?.asOf,
      withRefunds: refunds !== undefined && refunds.drafts.length > 0,
      ...summary,
      ...step,
    },
  ]
}

/** The rows as `s`, each with its place, the next due time of its refunds, and whether another one has its order. */
function findRows(tx: Tx, given: ReturnType<typeof describeRow>) {
  return tx`(
      select given.*, found.place, case when with_refunds then (
        select min(due_at) from (
          select due_at from refunds as r where ${tx.unsafe(byTransaction('r', 'given'))} offset 0) as r
      ) end as refund_due_at, case
        when given.order_verified
          and (given.state in ('paid', 'partially_refunded') or found.same_order <> '{}')
        then coalesce((
          select true from transactions as o
          where o.transaction_id <> given.transaction_id and ${tx.unsafe(byKey('o', ORDER, 'given'))} limit 1), false)
        else false end as has_other_of_order
      from ${rowSet(tx, 'given', COLUMNS, given)} cross join lateral (
        select ctid as place, same_order from transactions as t where ${tx.unsafe(byTransaction('t', 'given'))} limit 1
      ) as found
    ) as s`
}
