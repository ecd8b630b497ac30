import type { Ledgers } from './ledgers.ts'

/**
 * Lists refunds whose outcome the service cannot determine, so that they wait for an operator or are queried
 * indefinitely: no notification about them was ever acknowledged, and either they failed at the gateway after
 * it had accepted them, or money of their payment moved without a notification while several of its refunds
 * were open: growth alone does not show which refund it belongs to.
 */
export function listUndecidable({ stored, moved }: Ledgers) {
  const told = new Set(moved.told)
  const failed = new Set(moved.failed)
  const silent = new Set(
    moved.movements
      .filter(({ requestId }) => !told.has(requestId))
      .map(({ paymentId }) => paymentId),
  )
  const transactions = new Map(stored.payments.map(({ id, transactionId }) => [id, transactionId]))
  const countOf = (paymentId: string) =>
    stored.refunds.filter((refund) => refund.paymentId === paymentId).length
  return stored.refunds
    .filter(({ id, status }) => !isEnded(status) && !told.has(id))
    .filter(
      ({ id, paymentId }) => failed.has(id) || (silent.has(paymentId) && countOf(paymentId) > 1),
    )
    .map(({ id, paymentId }) => ({ id, transactionId: transactions.get(paymentId) }))
}

/** `needs_review` does not count: there the decision is an operator's. */
export function isEnded(status: string): boolean {
  return status === 'succeeded' || status === 'failed'
}
