import { z } from '@hono/zod-openapi'
import { toIso } from '../db/client.ts'
import { Amount, Id, Time } from '../http/input.ts'
import { Payment, showPayment } from '../payments/view.ts'
import type { TransactionRow, TransactionWithPayments } from './find.ts'

const Sync = z
  .object({
    status: z.enum(['queued', 'settled', 'retrying', 'abandoned']),
    asOf: Time.nullable().openapi({
      description: 'When the gateway was asked the answer shown here',
    }),
    nextAttemptAt: Time.nullable(),
    attempts: z.int().openapi({ description: 'Failed queries in a row' }),
    lastError: z.string().nullable(),
  })
  .openapi('Sync')

/** A transaction as order systems see it. */
export const Transaction = z
  .object({
    transactionId: Id,
    merchantCode: z.string(),
    orderId: z.string().nullable(),
    merchantTxnId: z.string().nullable(),
    currency: z.string().nullable(),
    state: z.enum(['pending', 'paid', 'partially_refunded', 'refunded', 'failed']),
    paidAmount: Amount,
    refundedAmount: Amount,
    duplicatePayment: z.boolean().openapi({ description: 'More than one payment succeeded' }),
    payments: z.array(Payment),
    final: z.boolean().openapi({ description: 'Nothing more is expected to change by itself' }),
    sync: Sync,
    ipnCount: z.int().openapi({ description: 'Notifications delivered, repeats included' }),
    firstSeenAt: Time,
    updatedAt: Time,
  })
  .openapi('Transaction')

export type TransactionView = z.infer<typeof Transaction>

export function showTransaction({
  transaction: t,
  payments,
}: TransactionWithPayments): TransactionView {
  return {
    transactionId: t.transactionId,
    merchantCode: t.merchantCode,
    orderId: t.orderId,
    merchantTxnId: t.merchantTxnId,
    currency: t.currency,
    state: t.state,
    paidAmount: t.paidAmount,
    refundedAmount: t.refundedAmount,
    duplicatePayment: t.duplicatePayment,
    payments: payments.map(({ payment, refundable }) =>
      showPayment(payment, t.currency, refundable),
    ),
    final: t.final,
    sync: {
      status: nameSyncStatus(t),
      asOf: toIso(t.asOf),
      nextAttemptAt: t.leaseId === null ? toIso(t.dueAt) : null,
      attempts: t.attempts,
      lastError: t.lastError,
    },
    ipnCount: t.ipnCount,
    firstSeenAt: toIso(t.firstSeenAt),
    updatedAt: toIso(t.updatedAt),
  }
}

/** Weak, because `sync`, `ipnCount` and `asOf` may differ under the same tag. */
export function writeEtag({ version }: TransactionRow): string {
  return `W/"${version}"`
}

function nameSyncStatus(t: TransactionRow): z.infer<typeof Sync>['status'] {
  if (t.abandonedAt !== null) return 'abandoned'
  if (t.dueAt === null) return 'settled'
  return t.attempts > 0 ? 'retrying' : 'queued'
}
