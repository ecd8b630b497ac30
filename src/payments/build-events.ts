import type { NewEvent } from '../events/record-events.ts'
import type { PaymentRecord } from './find-payments.ts'
import type { PaymentChange } from './types.ts'
import { showPayment } from './view.ts'

/**
 * Builds one event for each payment that the gateway's answer changed, however many of its fields.
 * @param payments the payments as the commit leaves them
 */
export function buildPaymentEvents(
  changes: readonly PaymentChange[],
  payments: readonly PaymentRecord[],
): NewEvent[] {
  return payments.flatMap(({ payment, order, refundable }): NewEvent[] => {
    const own = changes.filter(({ paymentId }) => paymentId === payment.paymentId)
    if (own.length === 0) return []
    const { merchantCode, transactionId } = payment
    const type = own.some(({ before }) => before === null) ? 'payment.created' : 'payment.updated'
    const data = showPayment(payment, { ...order, merchantCode }, refundable)
    return [{ merchantCode, transactionId, type, data }]
  })
}
