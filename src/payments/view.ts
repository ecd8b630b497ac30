import { z } from '@hono/zod-openapi'
import type { OrderFacts } from '../db/order-facts.ts'
import type { payments } from '../db/schema.ts'
import { Amount, Id, MerchantTxnId, OrderId, Time } from '../http/fields.ts'
import { toIso } from '../platform/postgres/row-set.ts'

/** The values that the gateway documents (specification 2.6). */
export const STATUSES = ['SUCCESS', 'FAILED', 'PROCESSING'] as const
export const METHODS = ['QR', 'ATM', 'CC'] as const

export type PaymentRow = typeof payments.$inferSelect

export const isKnownStatus = (status: string) => STATUSES.some((one) => one === status)

export function isRecognised(payment: Pick<PaymentRow, 'status' | 'paymentMethod'>): boolean {
  return isKnownStatus(payment.status) && METHODS.some((one) => one === payment.paymentMethod)
}

const EXAMPLE = {
  ...{ id: '1439211', transactionId: '240830080146NDTISR', merchantCode: 'UFLIYL' },
  ...{ orderId: 'DH1', merchantTxnId: 'T1', status: 'SUCCESS', amount: '20000000' },
  ...{ refundedAmount: '0', refundableAmount: '20000000', currency: 'VND', paymentMethod: 'QR' },
  ...{ unrecognised: false, missing: false, unreadable: false, hold: null },
  firstSeenAt: '2026-11-21T09:33:03.254Z',
  updatedAt: '2026-11-21T09:33:03.254Z',
  asOf: '2026-11-21T09:33:03.230Z',
}

/** While an object is held, nothing about it is sent to the gateway. */
export const Hold = z
  .strictObject({
    reason: z.string(),
    by: z.string().describe('The name of the API key or the person, or who used the command line'),
    since: Time,
  })
  .openapi('Hold', {
    example: {
      reason: 'the shop disputes it',
      by: 'operations',
      since: '2026-11-22T09:33:05.120Z',
    },
  })

export const AccountHold = Hold.optional().describe(
  'Only while the merchant account is held: none of its refunds is sent. Shown where the object is read by itself; a hold of the account changes no transaction and is in no event',
)

export const Payment = z
  .strictObject({
    id: Id,
    transactionId: Id,
    merchantCode: z.string(),
    orderId: OrderId,
    merchantTxnId: MerchantTxnId,
    status: z
      .string()
      .describe(
        'SUCCESS, FAILED or PROCESSING; any other value is returned as received, with `unrecognised`. A success that gets such a value still counts for the transaction, and cannot be refunded',
      ),
    amount: Amount,
    refundedAmount: Amount,
    refundableAmount: Amount.describe(
      'What can still be refunded: the amount less refunds made and refunds in progress. An amount that changes after the payment succeeded allows no more until a later answer confirms it',
    ),
    currency: z.string().nullable(),
    paymentMethod: z
      .string()
      .describe('QR, ATM or CC; any other value is returned as received, with `unrecognised`'),
    unrecognised: z.boolean(),
    missing: z.boolean().describe('The gateway listed the payment once and no longer does'),
    unreadable: z
      .boolean()
      .describe(
        "The gateway's newest answer lists it with values that cannot be read; the ones shown are the last that could",
      ),
    hold: Hold.nullable().describe(
      'While it is set, no refund of the payment is sent, and new ones are refused',
    ),
    accountHold: AccountHold,
    firstSeenAt: Time,
    updatedAt: Time,
    asOf: Time.describe('When the query was sent whose answer is shown'),
  })
  .openapi('Payment', { example: EXAMPLE })

export const SHOWN_COLUMNS = [
  ...(['paymentId', 'transactionId', 'status', 'amount', 'refundedAmount'] as const),
  ...(['paymentMethod', 'missing', 'unreadable', 'hold'] as const),
  ...(['firstSeenAt', 'updatedAt', 'asOf'] as const),
]

export type StoredHold = PaymentRow['hold']

/** `refundable`: how much of it can still be refunded (a decimal string). */
export type ShownPayment = Pick<PaymentRow, (typeof SHOWN_COLUMNS)[number]> & { refundable: string }

export type PaymentOrder = OrderFacts & { merchantCode: string }

export function showPayment(
  row: ShownPayment,
  order: PaymentOrder,
  accountHold?: StoredHold,
): z.infer<typeof Payment> {
  const { transactionId, status, amount, refundedAmount, paymentMethod } = row
  const { merchantCode, orderId, merchantTxnId, currency } = order
  const { missing, unreadable, hold } = row
  const isRefundable = status === 'SUCCESS' && !missing && !unreadable
  return {
    id: row.paymentId,
    ...{ transactionId, merchantCode, orderId, merchantTxnId, status, amount, refundedAmount },
    refundableAmount: isRefundable ? row.refundable : '0',
    ...{ currency, paymentMethod, unrecognised: !isRecognised(row), missing, unreadable, hold },
    ...(accountHold ? { accountHold } : {}),
    firstSeenAt: toIso(row.firstSeenAt),
    updatedAt: toIso(row.updatedAt),
    asOf: toIso(row.asOf),
  }
}
