import type { Ledgers } from './ledgers.ts'

/** The codes that the service takes for a final refusal: the default of GATEWAY_REFUND_FINAL_CODES. */
const FINAL_CODES = ['31', '32', '33', '34', '37']

/**
 * Lists refunds whose outcome the service cannot determine, so that they wait for an operator or are queried
 * indefinitely: no notification about them was ever acknowledged, and
 * - they failed at the gateway after it had accepted them, or
 * - money of their payment moved without a notification while several of its refunds were open: growth alone
 *   does not show which refund it belongs to, or
 * - the gateway refused them with a code that is not known to be final, and moved nothing.
 */
export function listUndecidable({ stored, moved: { movements, ...gateway } }: Ledgers) {
  const told = new Set(gateway.told)
  const failed = new Set(gateway.failed)
  const silent = new Set(
    movements.filter(({ requestId }) => !told.has(requestId)).map(({ paymentId }) => paymentId),
  )
  const transactions = new Map(stored.payments.map(({ id, transactionId }) => [id, transactionId]))
  const moved = new Set(movements.map(({ requestId }) => requestId))
  const countOf = (paymentId: string) =>
    stored.refunds.filter((refund) => refund.paymentId === paymentId).length
  return stored.refunds
    .filter(({ id, status }) => !isEnded(status) && !told.has(id))
    .filter(
      ({ id, paymentId, refusedCode }) =>
        failed.has(id) ||
        (silent.has(paymentId) && countOf(paymentId) > 1) ||
        (refusedCode !== null && !FINAL_CODES.includes(refusedCode) && !moved.has(id)),
    )
    .map(({ id, paymentId }) => ({ id, transactionId: transactions.get(paymentId) }))
}

/** `needs_review` does not count: there the decision is an operator's. */
export function isEnded(status: string): boolean {
  return status === 'succeeded' || status === 'failed'
}
