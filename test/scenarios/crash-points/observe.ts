import { countArrived, listMoved } from './gateway-truth.ts'
import type { Observed } from './judge.ts'
import type { Case } from './plays.ts'
import type { Stage } from './stage.ts'

const PAID = '100'

/** Reads what both sides hold about a refund. Then decides one in `needs_review`, as a person would. */
export async function observe(stage: Stage, one: Case): Promise<Observed> {
  const { lab, dedupes } = stage
  const { refundId, amount, payment } = one
  const { sql } = lab.database
  const stored = await sql<{ id: string; status: string }[]>`
    select refund_id::text as id, status from refunds where payment_id = ${payment.id}`
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
    refundableDecided: stored[0]?.status === 'needs_review' ? await decide(stage, one) : null,
  }
}

/** @returns what is left to refund after the decision; null when it was refused */
async function decide({ lab }: Stage, { refundId, payment }: Case): Promise<string | null> {
  const { status } = await lab.api(`/v1/refunds/${refundId}/resolution`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ outcome: 'failed', reason: 'the gateway does not know it' }),
  })
  return status === 200 ? (await lab.payment(payment.id)).refundableAmount : null
}
