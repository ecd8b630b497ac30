import { z } from '@hono/zod-openapi'
import { toIso } from '../db/client.ts'
import { Amount, Id, Time } from '../http/input.ts'
import type { PaymentRow } from './find.ts'

const EXAMPLE = {
  id: '1439211',
  transactionId: '240830080146NDTISR',
  status: 'SUCCESS',
  amount: '20000000',
  refundedAmount: '0',
  refundableAmount: '20000000',
  currency: 'VND',
  paymentMethod: 'QR',
  unrecognised: false,
  missing: false,
  firstSeenAt: '2026-11-21T09:33:03.254Z',
  updatedAt: '2026-11-21T09:33:03.254Z',
  asOf: '2026-11-21T09:33:03.230Z',
}

/** A payment as order systems see it. */
export const Payment = z
  .strictObject({
    id: Id,
    transactionId: Id,
    status: z.string().openapi({
      description: 'SUCCESS, FAILED or PROCESSING; or as it came, with `unrecognised`',
    }),
    amount: Amount,
    refundedAmount: Amount,
    refundableAmount: Amount.openapi({
      description: 'What is left: without what was refunded, and without open refunds',
    }),
    currency: z.string().nullable(),
    paymentMethod: z
      .string()
      .openapi({ description: 'QR, ATM or CC; or as it came, with `unrecognised`' }),
    unrecognised: z.boolean(),
    missing: z
      .boolean()
      .openapi({ description: 'The gateway listed it once and does not any more' }),
    firstSeenAt: Time,
    updatedAt: Time,
    asOf: Time.openapi({ description: 'When the gateway was asked' }),
  })
  .openapi('Payment', { example: EXAMPLE })

const STATUSES = ['SUCCESS', 'FAILED', 'PROCESSING']
const METHODS = ['QR', 'ATM', 'CC']

/** @param refundable what is left by the balance; shown as `0` unless the payment succeeded and is listed */
export function showPayment(
  row: PaymentRow,
  currency: string | null,
  refundable: string,
): z.infer<typeof Payment> {
  return {
    id: row.paymentId,
    transactionId: row.transactionId,
    status: row.status,
    amount: row.amount,
    refundedAmount: row.refundedAmount,
    refundableAmount: row.status === 'SUCCESS' && !row.missing ? refundable : '0',
    currency,
    paymentMethod: row.paymentMethod,
    unrecognised: !STATUSES.includes(row.status) || !METHODS.includes(row.paymentMethod),
    missing: row.missing,
    firstSeenAt: toIso(row.firstSeenAt),
    updatedAt: toIso(row.updatedAt),
    asOf: toIso(row.asOf),
  }
}
