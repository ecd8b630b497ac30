import type { Context } from '../context.ts'
import type { Tx } from '../db/client.ts'
import {
  announceDiscrepancies,
  closeDiscrepancies,
  type Recorded,
  recordDiscrepancies,
} from '../discrepancies/record.ts'
import type { Written } from './answers.ts'
import { findDisagreements } from './disagreements.ts'
import type { Answered } from './lease.ts'

/** What a settling commit learnt about the gateway's honesty; said aloud once it is committed. */
export type Notes = {
  found: Recorded[]
  /** From a transaction's first payment seen to its first notification (s); 0 where that came first. */
  ipnDelaysS: number[]
}

/**
 * Records what the applied answers show to be in disagreement, and what agrees again; measures the delay
 * of first notifications. Nothing is read or written for an answer that shows nothing of it.
 */
export async function noteAnswers(tx: Tx, written: readonly Written[]): Promise<Notes> {
  const seen = written.flatMap(({ applied, ...one }) => (applied ? [{ ...one, applied }] : []))
  const judged = seen.map(findDisagreements)
  const closings = judged.flatMap((one) => one.closings)
  const notified = seen.filter(
    ({ row, applied }) => row.ipnCount > 0 && !row.ipnMeasured && applied.payments.length > 0,
  )
  const late = notified.filter(({ known }) => known.length > 0).map(({ claim }) => claim)
  for (const { merchantCode, transactionId } of late) {
    closings.push({ merchantCode, transactionId, kind: 'ipn_missing' })
  }
  // Sent together, run one after the other: what is found again is open again.
  const [, found, delays] = await Promise.all([
    closeDiscrepancies(tx, closings),
    recordDiscrepancies(
      tx,
      judged.flatMap((one) => one.found),
    ),
    measureDelays(tx, late),
  ])
  const first = notified.filter(({ known }) => known.length === 0).map(() => 0)
  return { found, ipnDelaysS: [...first, ...delays] }
}

/** Says aloud what was committed, each in the trace of its own transaction. */
export function announceNotes(
  ctx: Context,
  { found, ipnDelaysS }: Notes,
  answers: readonly Answered[],
): void {
  for (const one of found) {
    const own = answers.find(
      ({ claim }) =>
        claim.transactionId === one.transactionId && claim.merchantCode === one.merchantCode,
    )
    const resume = own?.resume ?? ((say) => say())
    resume(() => announceDiscrepancies(ctx, [one]))
  }
  for (const delayS of ipnDelaysS) ctx.metrics.ipnDelay.observe(delayS)
}

async function measureDelays(
  tx: Tx,
  late: readonly { merchantCode: string; transactionId: string }[],
): Promise<number[]> {
  if (late.length === 0) return []
  const rows = await tx<{ delayS: number | null }[]>`
    select greatest(0, extract(epoch from (
        select min(first_received_at) from ipn_events e
        where e.merchant_code = k.merchant_code and e.transaction_id = k.transaction_id)
      - (select min(first_seen_at) from payments p
        where p.merchant_code = k.merchant_code and p.transaction_id = k.transaction_id)))::float8
      as "delayS"
    from unnest(
      ${late.map((key) => key.merchantCode)}::text[], ${late.map((key) => key.transactionId)}::text[]
    ) as k (merchant_code, transaction_id)`
  return rows.flatMap(({ delayS }) => (delayS === null ? [] : [delayS]))
}
