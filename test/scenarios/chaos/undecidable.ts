import type { Ledgers } from './ledgers.ts'

/**
 * Refunds whose end nobody can tell from this side, so that a person has to, or they are asked about for
 * ever: no notification about them was ever taken in, and either they failed at the gateway after it had
 * taken them, or money of their payment moved just as silently while several of its refunds were open:
 * growth alone cannot say whose it was then.
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

/** A person's decision is no end of the service's. */
export function isEnded(status: string): boolean {
  return status === 'succeeded' || status === 'failed'
}
