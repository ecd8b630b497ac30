import type { Config } from '../config/config.ts'
import { transactions } from '../db/schema.ts'
import type { TransactionKey } from '../db/transaction-key.ts'
import { type ChangeRow, recordChanges } from '../events/record-changes.ts'
import type { SnapshotRef } from '../payments/types.ts'
import { pipeline } from '../platform/postgres/pipeline.ts'
import { pickColumns, rowSet } from '../platform/postgres/row-set.ts'
import type { Tx } from '../platform/postgres/types.ts'
import {
  type PaymentFacts,
  type PaymentsSummary,
  summarisePayments,
} from '../transactions/summarise-payments.ts'

/** A transaction to summarise. The caller holds its row. */
export type SummaryInput = {
  claim: TransactionKey
  payments: readonly PaymentFacts[]
  refundsOpen: boolean
  /** The newest answer has an entry that was not applied. */
  unapplied: boolean
  /** Something visible to readers has changed. */
  changed: boolean
  /** The applied answer, if any. */
  snapshot: SnapshotRef | undefined
  /** The transaction before. */
  before: { state: string; final: boolean; unappliedEntries: boolean }
}

/** The summary of a transaction: its state and sums. */
export type TransactionSummary = PaymentsSummary &
  Omit<SummaryInput, 'claim' | 'payments' | 'refundsOpen'> &
  TransactionKey & {
    /** It has payments. */
    seen: boolean
    /** It becomes final in this commit. */
    turnsFinal: boolean
  }

const COLUMNS = {
  ...pickColumns(transactions, 'merchantCode', 'transactionId', 'state', 'final', 'asOf'),
  ...pickColumns(transactions, 'paidAmount', 'refundedAmount', 'duplicatePayment'),
  unapplied: 'boolean',
  changed: 'boolean',
  seen: 'boolean',
}

/** Summarises a transaction's payments; it is final only when its refunds are, too. */
export function summarise({
  claim,
  payments,
  refundsOpen,
  ...rest
}: SummaryInput): TransactionSummary {
  const { merchantCode, transactionId } = claim
  const summary = summarisePayments(payments)
  const final = summary.final && !refundsOpen && !rest.unapplied
  const turnsFinal = final && !rest.before.final
  const seen = payments.length > 0
  const changed = rest.changed || rest.unapplied !== rest.before.unappliedEntries
  return { merchantCode, transactionId, ...summary, ...rest, changed, final, turnsFinal, seen }
}

/**
 * Writes the summaries of transactions, with a row in `changes` for every changed state. Schedules one more query
 * for later (`RECONCILE_FINAL_FOR_MS`) for a transaction that becomes final or changes while final.
 */
export async function writeSummaries(
  tx: Tx,
  config: Config,
  rows: readonly TransactionSummary[],
): Promise<void> {
  if (rows.length === 0) return
  const reconcileMs = config.RECONCILE_FINAL_FOR_MS
  const moved = rows.filter(({ state, before }) => state !== before.state)
  const written = rows.map(({ snapshot, ...row }) => ({ ...row, asOf: snapshot?.asOf }))
  await pipeline(
    moved.length > 0 && recordChanges(tx, moved.map(describeStateChange)),
    tx`
      update transactions as t set
        state = s.state, final = s.final, paid_amount = s.paid_amount,
        refunded_amount = s.refunded_amount, duplicate_payment = s.duplicate_payment,
        unapplied_entries = s.unapplied,
        as_of = coalesce(s.as_of, t.as_of), version = version + s.changed::int,
        updated_at = case when s.changed then now() else updated_at end,
        ipn_measured = t.ipn_measured or (s.seen and t.ipn_count > 0),
        reconcile_at = case
          when not s.final and t.reconcile_at < 'infinity' then null
          when s.final and (s.changed or not t.final) and ${reconcileMs > 0}
            then now() + ${reconcileMs}::float8 * interval '1 millisecond'
          else t.reconcile_at end
      from ${rowSet(tx, 's', COLUMNS, written)}
      where t.merchant_code = s.merchant_code and t.transaction_id = s.transaction_id`.then(
      () => {},
    ),
  )
}

function describeStateChange({
  merchantCode,
  transactionId,
  before,
  state,
  snapshot,
}: TransactionSummary): ChangeRow {
  const after = { field: 'state', before: before.state, after: state, cause: 'query' }
  return { merchantCode, transactionId, ...after, callId: snapshot?.callId }
}
