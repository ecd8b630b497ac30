import { TRANSACTION_CHANGED } from '../db/names.ts'
import { byTransaction, formatWakeKey, type TransactionKey } from '../db/transaction-key.ts'
import { byExpressions, byKey } from '../platform/postgres/by-key.ts'
import { addMs } from '../platform/postgres/clock.ts'
import { notifyAfterCommit } from '../platform/postgres/notify.ts'
import type { Sql, Tx } from '../platform/postgres/types.ts'

/**
 * When `transactions as t` is due that was asked about in a burst: `gap_ms` after its last query, or after now if the
 * database's clock has gone back since.
 * @param now a column with the current time
 */
export const afterGap = (now: string) =>
  `least(${addMs(now, 't.gap_ms')}, greatest(${now}, ${addMs('t.queried_at', 't.gap_ms')}))`

/**
 * The assignments for `transactions as t` that request a query and restart retries and polls. `want` counts the
 * requests. A claim copies it to `claimed`, and if the two differ at its end, the transaction is due again. Without a
 * claim it is due at once, in a burst after its gap.
 * @param now a column with the current time
 */
const writeMakeDue = (now: string) => `
    want = t.want + 1, attempts = 0, polls = 0, asked_for_at = ${now}, abandoned_at = null,
    due_at = case
      when t.lease_id is not null then t.due_at
      else least(t.due_at, ${afterGap(now)}) end`

/** For an upsert whose new row is due now. */
export const MAKE_DUE_AGAIN = writeMakeDue('excluded.due_at')

/** For an update that has `CLOCK` in its `from`. */
export const MAKE_DUE = writeMakeDue('clock.at')

export const makeDue = (sql: Sql | Tx) => sql.unsafe(MAKE_DUE)

/** The transaction's key, as `k` for `byKey`. */
export function selectKey(sql: Sql | Tx, { merchantCode, transactionId }: TransactionKey) {
  return sql`(
    select ${merchantCode}::text as merchant_code, ${transactionId}::text as transaction_id) as k`
}

export function notifyTransactionChanged(tx: Tx, key: TransactionKey): void {
  notifyAfterCommit(tx, TRANSACTION_CHANGED, formatWakeKey(key))
}

/** Of at most 128 characters each, so that a payload stays below the 7,999 bytes of a NOTIFY. */
const IDS_PER_PAYLOAD = 20

/** Payloads that wake readers waiting for these ids: few, because every batch of notifications sends them. */
export function formatRegistered(transactionIds: Iterable<string>): string[] {
  const ids = [...new Set(transactionIds)]
  const takeNext = () => ids.splice(0, IDS_PER_PAYLOAD).join('\n')
  return Array.from({ length: Math.ceil(ids.length / IDS_PER_PAYLOAD) }, takeNext)
}

/** The format of this service's request ids, in either letter case. */
export const REQUEST_ID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i

const REFUNDS = byTransaction('r')
const PAYMENTS = byTransaction('p')
const ATTEMPTS = byKey('a', ['merchant_code', 'refund_id'], 'r')
const BY_REQUEST = byExpressions(
  ['e.merchant_code', 'lower(e.request_id)'],
  ['r.merchant_code', 'r.refund_id::text'],
)
const BY_PAYMENT = byKey('e', ['merchant_code', 'payment_id'], 'p')
const OWN_REFUND = byExpressions(
  ['r.merchant_code', 'r.refund_id'],
  ['e.merchant_code', 'e.refund_id'],
)

/**
 * The refund notifications of a transaction in `ipn_events`: those with the request id of one of its refunds, and
 * those that name one of its payments and whose request id belongs to no refund of ours. Both are look-ups by key.
 * @param unhandled only those that have not been handled
 */
export function selectRefundNotifications(
  sql: Sql | Tx,
  transaction: TransactionKey,
  { unhandled = false } = {},
) {
  const key = selectKey(sql, transaction)
  const wanted = sql.unsafe(`e.kind = 'refund' ${unhandled ? 'and e.handled_at is null' : ''}`)
  return sql`
    select e.* from ${key} cross join lateral (
      select merchant_code, refund_id from refunds as r where ${sql.unsafe(REFUNDS)} offset 0
    ) as r cross join lateral (
      select * from ipn_events as e where ${wanted} and ${sql.unsafe(BY_REQUEST)} offset 0
    ) as e
    union all
    select e.* from ${key} cross join lateral (
      select merchant_code, payment_id from payments as p where ${sql.unsafe(PAYMENTS)} offset 0
    ) as p cross join lateral (
      select * from ipn_events as e where ${wanted} and ${sql.unsafe(BY_PAYMENT)} offset 0
    ) as e
    where not exists (
      select from (select e.merchant_code, case
        when e.request_id ~* ${REQUEST_ID.source} then e.request_id::uuid end as refund_id) as e
      cross join lateral (
        select from refunds as r where ${sql.unsafe(OWN_REFUND)} limit 1) as r)`
}

/** The attempts of a transaction's refunds, as `a`. */
export function selectRefundAttempts(sql: Sql | Tx, transaction: TransactionKey) {
  return sql`(
    select a.* from ${selectKey(sql, transaction)} cross join lateral (
      select merchant_code, refund_id from refunds as r where ${sql.unsafe(REFUNDS)} offset 0
    ) as r cross join lateral (
      select * from refund_attempts as a where ${sql.unsafe(ATTEMPTS)} offset 0) as a) as a`
}
