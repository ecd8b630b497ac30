import type { TransactionKey } from '../../db/transaction-key.ts'
import { addAmounts } from '../../money.ts'
import { byKey } from '../../platform/postgres/by-key.ts'
import { pipeline } from '../../platform/postgres/transaction.ts'
import type { Tx } from '../../platform/postgres/types.ts'
import { lockRefundRows } from '../draft.ts'
import { startDraft } from '../transitions.ts'
import type { ExternalChange, ExternalRefund, LockedPayment, RefundDraft } from '../types.ts'
import { type RefundNotification, readUnhandledNotifications } from './read-notifications.ts'

/** The refunds of a transaction, locked until the commit, and their unhandled notifications. */
export type LockedRefunds = {
  drafts: RefundDraft[]
  payments: LockedPayment[]
  notifications: RefundNotification[]
  /** Changed states of external refunds, to be recorded. */
  externalChanges: ExternalChange[]
}

/**
 * Locks the payments, then the refunds of a transaction. The caller holds the transaction's lease and row.
 * @param asOf when the current snapshot's query was sent (database time); null without one
 */
export async function lockRefunds(
  tx: Tx,
  key: TransactionKey,
  asOf: string | null,
): Promise<LockedRefunds> {
  // Payments are locked first.
  const [rows, refunds, notifications, external] = await pipeline(
    lockPaymentRows(tx, key, asOf),
    lockRefundRows(tx, key, asOf),
    readUnhandledNotifications(tx, key, asOf),
    lockExternalRefunds(tx, key),
  )
  const payments = rows.map((row) => ({
    ...row,
    external: [],
    released: [],
    explainedAtFirst: '0',
    returning: '0',
    unmatchedDelta: undefined,
  }))
  const drafts = refunds.map(startDraft)
  return { drafts, payments: assign(payments, external), notifications, externalChanges: [] }
}

/**
 * Reads the external refunds again, after notifications may have changed some.
 * @returns whether there are others than before
 */
export async function refreshExternalRefunds(
  tx: Tx,
  key: TransactionKey,
  locked: LockedRefunds,
): Promise<boolean> {
  const list = () =>
    locked.payments.flatMap(({ external }) =>
      external.map(({ id, amount, matched }) => `${id} ${amount} ${matched}`),
    )
  const before = list()
  locked.payments = assign(locked.payments, await lockExternalRefunds(tx, key))
  return list().join('\n') !== before.join('\n')
}

const OF_TRANSACTION = ['merchant_code', 'transaction_id']

type ExternalRow = ExternalRefund & {
  paymentId: string
  outcome: 'part_of_first_sight' | 'released' | 'never_happened' | null
}

function assign(payments: readonly LockedPayment[], rows: readonly ExternalRow[]): LockedPayment[] {
  return payments.map((payment) => {
    const own = rows.filter(({ paymentId }) => paymentId === payment.paymentId)
    const explained = own.filter(({ outcome }) => outcome === 'part_of_first_sight')
    // What a person decided never to have happened may show all the same.
    const released = own.filter(
      ({ outcome }) => outcome === 'released' || outcome === 'never_happened',
    )
    return {
      ...payment,
      external: own.filter(({ outcome }) => outcome === null),
      released: released.map(({ amount }) => amount),
      explainedAtFirst: addAmounts(explained.map(({ amount }) => amount)),
    }
  })
}

type PaymentRow = Omit<
  LockedPayment,
  'external' | 'released' | 'explainedAtFirst' | 'returning' | 'unmatchedDelta'
>

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
      not missing and unlisted_since is null and not unreadable
        and as_of = coalesce(${asOf}::timestamptz, as_of) as listed
    from (select ${merchantCode}::text as merchant_code, ${transactionId}::text as transaction_id) as k
    cross join lateral (
      select * from payments as p where ${tx.unsafe(byKey('p', OF_TRANSACTION, 'k'))} for update
    ) as p
    order by payment_id`
}

/**
 * Whether growth has shown an external refund that was read from the same signed text as `f`, on whichever payment: only
 * one of the two can have happened.
 */
const OTHER_IS_MATCHED = `exists (
  select from ipn_events e
    join ipn_events r on r.merchant_code = e.merchant_code and r.text_hash = e.text_hash and r.id <> e.id
    join foreign_refunds o on o.merchant_code = r.merchant_code
      and o.request_id in (r.request_id, lower(r.request_id))
      and o.payment_id = r.payment_id and o.amount = r.amount
  where e.id = f.ipn_event_id and o.matched and o.outcome is null)`

async function lockExternalRefunds(
  tx: Tx,
  { merchantCode, transactionId }: TransactionKey,
): Promise<ExternalRow[]> {
  return await tx<ExternalRow[]>`
    select f.id as "externalId", f.request_id as id, f.payment_id as "paymentId", f.amount, f.matched, f.outcome,
      f.failure_notified_at is not null as contradicted,
      f.outcome is null and not f.matched and ${tx.unsafe(OTHER_IS_MATCHED)} as "isOtherReading",
      coalesce(f.notified_at < p.first_as_of, false) as "notifiedBeforeFirst",
      (extract(epoch from clock_timestamp() - f.first_seen_at) * 1000)::float8 as "sinceSeenMs"
    from (select ${merchantCode}::text as merchant_code, ${transactionId}::text as transaction_id) as k
    cross join lateral (
      select merchant_code, payment_id, first_as_of, first_seen_at from payments as p
      where ${tx.unsafe(byKey('p', OF_TRANSACTION, 'k'))} offset 0
    ) as p cross join lateral (
      select * from foreign_refunds as f
      where f.outcome is distinct from 'own'
        and (f.source <> 'person' or coalesce(f.outcome, 'part_of_first_sight') = 'part_of_first_sight')
        and ${tx.unsafe(byKey('f', ['merchant_code', 'payment_id'], 'p'))} for update
    ) as f
    order by coalesce(f.notified_at, f.first_seen_at), f.request_id, f.amount`
}
