import { countArrived, listMoved } from './gateway-truth.ts'
import type { Observed } from './judge.ts'
import type { Case } from './plays.ts'
import type { Stage } from './stage.ts'

const PAID = '100'

/**
 * Reads what both sides hold about a refund. Then decides one in `needs_review`, or confirms one that was inferred, as a
 * person would.
 * @param runRound queries the transaction once
 */
export async function observe(
  stage: Stage,
  one: Case,
  runRound: () => Promise<void>,
): Promise<Observed> {
  const { lab, dedupes } = stage
  const { refundId, amount, payment } = one
  const { sql } = lab.database
  const stored = await sql<{ id: string; status: string; inferred: boolean }[]>`
    select refund_id::text as id, status, inferred from refunds where payment_id = ${payment.id}`
  const [own] = stored
  const outcome = own?.inferred ? 'succeeded' : 'failed'
  const attempts = await sql<{ outcome: string | null }[]>`
    select outcome from refund_attempts where refund_id = ${refundId} order by id`
  const [transaction] = await sql<{ isLeased: boolean; isFinal: boolean }[]>`
    select lease_id is not null as "isLeased", final as "isFinal" from transactions
    where transaction_id = ${payment.transactionId}`
  if (!transaction) throw new Error(`no transaction ${payment.transactionId}`)
  const events = await sql<{ type: string; status: string }[]>`
    select type, data ->> 'status' as status from event_outbox
    where type like 'refund.%' and data ->> 'id' = ${refundId} order by id`
  return {
    ...{ refundId, amount, paid: PAID, dedupes, stored, events, ...transaction },
    attempts: attempts.map(({ outcome }) => outcome),
    moved: listMoved(stage, one),
    arrived: countArrived(stage, one),
    refundable: (await lab.payment(payment.id)).refundableAmount,
    isInferred: own?.inferred === true,
    refundableDecided:
      own?.inferred || own?.status === 'needs_review'
        ? await decide(stage, one, outcome, runRound)
        : null,
  }
}

/** @returns what is left to refund after the decision; null when it was refused */
async function decide(
  { lab }: Stage,
  { refundId, payment }: Case,
  outcome: 'succeeded' | 'failed',
  runRound: () => Promise<void>,
): Promise<string | null> {
  const { status } = await lab.api(`/v1/refunds/${refundId}/resolution`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ outcome, reason: 'looked it up in the ledger' }),
  })
  if (status !== 200) return null
  if (outcome === 'succeeded') await runRound()
  return (await lab.payment(payment.id)).refundableAmount
}
