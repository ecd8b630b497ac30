import type { NewEvent } from '../events/record.ts'
import type { Change } from './apply.ts'
import type { PaymentAsRead } from './find.ts'
import { showPayment } from './view.ts'

/**
 * One event for each payment that the gateway's answer changed, however much of it.
 * @param shown the payments as the commit leaves them
 */
export function tellPayments(
  changes: readonly Change[],
  shown: readonly PaymentAsRead[],
): NewEvent[] {
  return shown.flatMap(({ payment, currency, refundable }): NewEvent[] => {
    const own = changes.filter(({ paymentId }) => paymentId === payment.paymentId)
    if (own.length === 0) return []
    const { merchantCode, transactionId } = payment
    const type = own.some(({ before }) => before === null) ? 'payment.created' : 'payment.updated'
    return [{ merchantCode, transactionId, type, data: showPayment(payment, currency, refundable) }]
  })
}
