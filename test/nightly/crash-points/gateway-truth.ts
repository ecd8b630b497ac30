import type { Case } from './plays.ts'
import type { Stage } from './stage.ts'

/** Settles everything that the gateway has accepted under the refund's request id: its money moves. */
export async function settleAtGateway({ lab }: Stage, { refundId }: Case): Promise<void> {
  const accounts = [...lab.sandbox.state.merchants.values()]
  const accepted = accounts.flatMap(({ refunds }) => refunds.get(refundId) ?? [])
  const open = accepted.filter(({ status }) => status === 'accepted')
  for (const _ of open) await lab.settle(refundId)
}

/** Lists the amounts that moved for the payment, whatever their request id. */
export function listMoved({ lab }: Stage, { payment }: Case): string[] {
  const { ledger } = lab.sandbox.state
  return ledger.filter(({ paymentId }) => paymentId === payment.id).map(({ amount }) => amount)
}

/** Counts the REFUND requests of the refund that the gateway received in full. */
export function countArrived({ lab }: Stage, { refundId }: Case): number {
  return lab.sandbox.state.journal.entries.filter(
    (entry) => entry.command === 'REFUND' && 'requestId' in entry && entry.requestId === refundId,
  ).length
}
