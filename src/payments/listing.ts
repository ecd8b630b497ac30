import { z } from '@hono/zod-openapi'
import type { Listing } from '../access/listing.ts'
import { AmountParameter, Id, TimeParameter } from '../http/fields.ts'
import { cutPage } from '../http/list.ts'
import { type FoundPayment, listPayments } from './find-payments.ts'
import { METHODS, Payment, STATUSES, showPayment } from './view.ts'

const query = {
  status: z.enum(STATUSES).optional().openapi({ description: 'Only payments with this status' }),
  paymentMethod: z
    .enum(METHODS)
    .optional()
    .openapi({ description: 'Only payments made in this way' }),
  orderId: Id.optional().openapi({ description: 'Only payments of this order' }),
  transactionId: Id.optional().openapi({ description: 'Only payments of this transaction' }),
  amount: AmountParameter,
  from: TimeParameter,
  to: TimeParameter,
}

/** Payments, newest first. */
export const PAYMENTS: Listing<typeof query, z.infer<typeof Payment>> = {
  name: 'payments',
  scope: 'payments:read',
  query,
  schema: Payment,
  async read(ctx, filter, limit, after) {
    const rows = await listPayments(ctx, filter, limit, after)
    return cutPage(rows, limit, locate, showFound)
  },
}

/** Writes out a payment that was found by itself. */
export function showFound({ payment, order, refundable, accountHold }: FoundPayment) {
  const of = { ...order, merchantCode: payment.merchantCode }
  return showPayment(payment, of, refundable, accountHold)
}

const locate = ({ payment: { firstSeenAt, paymentId, merchantCode } }: FoundPayment) => ({
  time: firstSeenAt,
  id: paymentId,
  merchantCode,
})
