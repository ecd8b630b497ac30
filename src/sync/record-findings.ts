import postgres from 'postgres'
import { transactions } from '../db/schema.ts'
import type { TransactionKey } from '../db/transaction-key.ts'
import type { RecordedDiscrepancy, ResolvedDiscrepancy } from '../discrepancies/kinds.ts'
import {
  logDiscrepancies,
  recordDiscrepancies,
  resolveDiscrepancies,
} from '../discrepancies/store.ts'
import { PaymentElsewhereError } from '../payments/odd-readings.ts'
import { byKey } from '../platform/postgres/by-key.ts'
import { isTransient } from '../platform/postgres/errors.ts'
import { pickColumns, rowSet } from '../platform/postgres/row-set.ts'
import { pipeline } from '../platform/postgres/transaction.ts'
import type { Tx } from '../platform/postgres/types.ts'
import type { AppliedAnswer } from './apply-answers.ts'
import type { SyncContext } from './context.ts'
import { findDisagreements } from './find-disagreements.ts'
import type { QueryAnswer } from './types.ts'

/**
 * SQLSTATE classes of an error that a value causes: data exceptions, violated constraints, and exceeded limits of
 * a value. Any other error, such as a deadlock or a cancelled statement, is a fault of ours, not of the answer.
 */
const CAUSED_BY_VALUE = /^(22|23|54)/

/**
 * Why an answer cannot be stored: the database rejects one of its values.
 * @returns undefined for any other error, which the answer did not cause
 */
export function explainRefusedAnswer(error: unknown): string | undefined {
  const refused = error instanceof postgres.PostgresError && CAUSED_BY_VALUE.test(error.code)
  return refused ? `the database rejected the answer (${error.code})` : undefined
}

/** Whether the same commit may succeed when it is run again at once. */
export function isWorthRepeating(error: unknown): boolean {
  return error instanceof PaymentElsewhereError || isTransient(error)
}

/** What a commit found beside the payments; logged and counted once it is done. */
export type Findings = {
  found: RecordedDiscrepancy[]
  /** From when a transaction's first payment was seen to its first notification (s); 0 if that came first. */
  ipnDelaysS: number[]
}

export const NO_FINDINGS: Findings = { found: [], ipnDelaysS: [] }

/**
 * Records the discrepancies that the applied answers show, resolves those that are over, and measures the
 * delay of first notifications. Runs no statement when there is nothing to record.
 */
export async function recordFindings(tx: Tx, answers: readonly AppliedAnswer[]): Promise<Findings> {
  const applied = answers.flatMap(({ applied, ...one }) => (applied ? [{ ...one, applied }] : []))
  const judged = applied.map(findDisagreements)
  const resolved: ResolvedDiscrepancy[] = judged.flatMap((one) => one.resolved)
  const notified = applied.filter(
    ({ row, applied: { payments } }) => row.ipnCount > 0 && !row.ipnMeasured && payments.length > 0,
  )
  const late = notified.filter(({ known }) => known.length > 0).map(({ claim }) => claim)
  for (const { merchantCode, transactionId } of late) {
    resolved.push({ merchantCode, transactionId, kind: 'ipn_missing' })
  }
  // Resolved first: what is found again must end up open.
  const [, found, delays] = await pipeline(
    resolveDiscrepancies(tx, resolved),
    recordDiscrepancies(
      tx,
      judged.flatMap((one) => one.found),
    ),
    measureDelays(tx, late),
  )
  const first = notified.filter(({ known }) => known.length === 0).map(() => 0)
  return { found, ipnDelaysS: [...first, ...delays] }
}

/** Logs and counts committed findings, each in the trace of its own transaction. */
export function logFindings(
  ctx: Pick<SyncContext, 'log' | 'metrics'>,
  { found, ipnDelaysS }: Findings,
  answers: readonly QueryAnswer[],
): void {
  for (const one of found) {
    const own = answers.find(
      ({ claim }) =>
        claim.transactionId === one.transactionId && claim.merchantCode === one.merchantCode,
    )
    const resume = own?.resume ?? ((log) => log())
    resume(() => logDiscrepancies(ctx, [one]))
  }
  for (const delayS of ipnDelaysS) ctx.metrics.ipnDelay.observe(delayS)
}

const KEY = ['merchant_code', 'transaction_id']
const KEY_COLUMNS = pickColumns(transactions, 'merchantCode', 'transactionId')

async function measureDelays(tx: Tx, late: readonly TransactionKey[]): Promise<number[]> {
  if (late.length === 0) return []
  const rows = await tx<{ delayS: number | null }[]>`
    select greatest(0, extract(epoch from (
        select min(first_received_at) from (
          select * from ipn_events as e where ${tx.unsafe(byKey('e', KEY, 'k'))} offset 0) as e)
      - (select min(first_seen_at) from (
          select * from payments as p where ${tx.unsafe(byKey('p', KEY, 'k'))} offset 0) as p)))::float8
      as "delayS"
    from ${rowSet(tx, 'k', KEY_COLUMNS, late)}`
  return rows.flatMap(({ delayS }) => (delayS === null ? [] : [delayS]))
}
