import { addAmounts, compareAmounts } from '../../money.ts'
import type { SandboxPayment, SandboxState } from '../state.ts'

/** Sums the accepted refunds of a payment that have neither moved money nor failed. */
export function sumUnsettled({ refunds }: SandboxPayment): string {
  const unsettled = refunds.filter(({ status }) => status === 'accepted')
  return addAmounts(unsettled.map(({ amount }) => amount))
}

/**
 * Returns whether the amount fits the balance that is neither refunded nor reserved; always `true` if
 * the mode does not guard the balance.
 */
export function fitsBalance(
  { refundMode }: Pick<SandboxState, 'refundMode'>,
  payment: SandboxPayment,
  amount: string,
): boolean {
  if (!refundMode.guardsBalance) return true
  const taken = addAmounts([payment.refundedAmount, sumUnsettled(payment), amount])
  return compareAmounts(taken, payment.amount) <= 0
}
