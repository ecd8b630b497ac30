import { transactions } from '../db/schema.ts'
import { byTransaction, selectKeys, type TransactionKey } from '../db/transaction-key.ts'
import { shortenSide } from '../discrepancies/kinds.ts'
import type { PaymentList } from '../gateway/types.ts'
import { lockPayments } from '../payments/apply-payments.ts'
import type { StoredPayment } from '../payments/compare-payments.ts'
import { listColumns, pickColumns, rowSet } from '../platform/postgres/row-set.ts'
import { pipeline } from '../platform/postgres/transaction.ts'
import type { Tx } from '../platform/postgres/types.ts'
import type { PaymentElsewhere } from '../transactions/move-payments.ts'
import { completeNames, type NotifiedPayment, readNotifiedPayments } from './name-transaction.ts'
import { LOCKED_COLUMNS, type LockedRow, listAnswered, type QueryAnswer } from './types.ts'

const SENT_COLUMNS = {
  ...pickColumns(transactions, 'merchantCode', 'transactionId', 'leaseId'),
  claimedAt: 'timestamptz',
  sentAfterMs: 'float8',
  sinceSentMs: 'float8',
}

const ROW = `t.first_paid_at is not null as "wasPaid", ${listColumns(transactions, 't', LOCKED_COLUMNS)}`

/** The locked rows, each with the id for the record of its call. */
const NUMBERED = `select *, nextval('gateway_calls_id_seq') as "callId" from locked`

/** The same for a row to which no answer is applied. */
const ROW_WITHOUT_ANSWER = `${ROW}, false as newer, coalesce(as_of, now())::text as "asOf",
  coalesce(as_of, now())::text as "firstAsOf"`

/**
 * Fences a commit: locks, until its end, the rows of those transactions whose leases this process still holds.
 * @returns the rows by lease id; none for a lease that another worker has taken over
 */
export async function lockClaimed(
  tx: Tx,
  sent: readonly Pick<QueryAnswer, 'claim' | 'sentAfterMs'>[],
): Promise<Map<string, LockedRow>> {
  const rowsSent = sent.map(({ claim, sentAfterMs }) => {
    const sinceSentMs = performance.now() - claim.knownAt - sentAfterMs
    return { ...claim, sentAfterMs, sinceSentMs }
  })
  const rows = await tx<(LockedRow & { leaseId: string })[]>`
    with locked as materialized (
    select t.lease_id as "leaseId", ${tx.unsafe(ROW)}, as_of is null or as_of < sent.at as newer, sent.at::text as "asOf",
      least(sent.at, least(now(), clock_timestamp()) - since_sent_ms * interval '1 millisecond')::text as "firstAsOf"
    from (
      select merchant_code, transaction_id, lease_id, since_sent_ms,
        claimed_at + sent_after_ms * interval '1 millisecond' as at
      from ${rowSet(tx, 's', SENT_COLUMNS, rowsSent)}
      order by merchant_code, transaction_id
    ) as sent cross join lateral (
      select * from transactions as t
      where t.lease_id = sent.lease_id
        and ${tx.unsafe(byTransaction('t', 'sent'))} limit 1 for update
    ) as t)
    ${tx.unsafe(NUMBERED)}`
  return new Map(rows.map(({ leaseId, ...row }) => [leaseId, row]))
}

/**
 * Locks rows without a lease of this process. A caller that already holds a row passes `skip locked`, because two
 * that wait for each other would deadlock.
 */
export async function lockUnclaimed(
  tx: Tx,
  keys: readonly TransactionKey[],
  otherwise: 'skip locked' | '' = '',
): Promise<{ key: TransactionKey; row: LockedRow }[]> {
  const rows = await tx<(LockedRow & TransactionKey)[]>`
    with locked as materialized (
    select t.merchant_code as "merchantCode", t.transaction_id as "transactionId", ${tx.unsafe(ROW_WITHOUT_ANSWER)}
    from ${selectKeys(tx, keys)} cross join lateral (
      select * from transactions as t
      where ${tx.unsafe(byTransaction('t'))} limit 1 for update ${tx.unsafe(otherwise)}
    ) as t)
    ${tx.unsafe(NUMBERED)}`
  return rows.map(({ merchantCode, transactionId, ...row }) => {
    return { key: { merchantCode, transactionId }, row }
  })
}

/** An answer whose transaction and payments this commit has locked. */
export type LockedAnswer = QueryAnswer & {
  row: LockedRow
  known: StoredPayment[]
  notified: NotifiedPayment[]
  /** Entries of the answer that cannot be read and that no person has dismissed. */
  undismissed: PaymentList['unreadable']
  hasDismissed: boolean
  /** Payments that the answer lists but that stay under another transaction. */
  elsewhere: PaymentElsewhere[]
  moved: string[]
}

/** Locks the transactions and then their payments, in one round trip. Undefined for a lost lease. */
export async function lockAnswers(
  tx: Tx,
  answers: readonly QueryAnswer[],
): Promise<(LockedAnswer | undefined)[]> {
  const keys = answers.map(({ claim }) => claim)
  const isUnreadable = answers.some(({ call }) => listAnswered(call).unreadable.length > 0)
  const [rows, known, notified, dismissed] = await pipeline(
    lockClaimed(tx, answers),
    lockPayments(tx, keys),
    readNotifiedPayments(tx, keys),
    isUnreadable && readDismissed(tx, keys),
  )
  return answers.map((answer, index) => {
    const row = rows.get(answer.claim.leaseId)
    if (!row) return undefined
    const names = completeNames(row, notified[index] ?? [])
    const own = new Set(dismissed ? dismissed[index] : [])
    const { claim, call, sentAfterMs } = answer
    const { unreadable } = listAnswered(call)
    return {
      claim,
      call,
      sentAfterMs,
      row: names ? { ...row, ...names, isNamed: true } : row,
      known: known[index] ?? [],
      notified: (notified[index] ?? []).filter(({ isVerified }) => isVerified),
      undismissed: unreadable.filter(
        ({ id, text }) => !own.has(identifyEntry(id, shortenSide(text))),
      ),
      hasDismissed: own.size > 0,
      elsewhere: [],
      moved: [],
    }
  })
}

const identifyEntry = (paymentId: string | null | undefined, text: string) =>
  JSON.stringify([paymentId ?? null, text])

/** The unreadable entries of each transaction whose discrepancies a person has resolved. */
async function readDismissed(tx: Tx, keys: readonly TransactionKey[]): Promise<string[][]> {
  const rows = await tx<{ place: number; paymentId: string | null; theirs: string }[]>`
    select k.ordinality::int as place, d.payment_id as "paymentId", d.theirs
    from ${selectKeys(tx, keys)} cross join lateral (
      select payment_id, theirs from discrepancies as d
      where d.kind = 'payment_unreadable' and d.resolved_by is not null and d.over_at is null
        and ${tx.unsafe(byTransaction('d'))} offset 0
    ) as d`
  return keys.map((_, index) =>
    rows.flatMap(({ place, paymentId, theirs }) =>
      place === index + 1 ? [identifyEntry(paymentId, theirs)] : [],
    ),
  )
}
