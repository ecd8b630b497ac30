import { z } from '@hono/zod-openapi'
import { toIso } from '../db/client.ts'
import { Amount, Id, Time } from '../http/input.ts'
import { Payment, showPayment } from '../payments/view.ts'
import type { TransactionRow, TransactionWithPayments } from './find.ts'

const Sync = z
  .strictObject({
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
  .strictObject({
    transactionId: Id,
    merchantCode: z.string(),
    orderId: z.string().nullable().openapi({ description: 'As notified; null without one' }),
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
  .openapi('Transaction', {
    example: {
      transactionId: '240830080146NDTISR',
      merchantCode: 'UFLIYL',
      orderId: 'DH1',
      merchantTxnId: 'T1',
      currency: 'VND',
      state: 'pending',
      paidAmount: '0',
      refundedAmount: '0',
      duplicatePayment: false,
      payments: [],
      final: false,
      sync: {
        status: 'queued',
        asOf: '2026-11-21T09:33:03.230Z',
        nextAttemptAt: '2026-11-21T09:33:08.230Z',
        attempts: 0,
        lastError: null,
      },
      ipnCount: 1,
      firstSeenAt: '2026-11-21T09:33:03.213Z',
      updatedAt: '2026-11-21T09:33:03.254Z',
    },
  })

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
