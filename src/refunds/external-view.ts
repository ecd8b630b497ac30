import { z } from '@hono/zod-openapi'
import type { OrderFacts } from '../db/order-facts.ts'
import type { externalRefunds } from '../db/schema.ts'
import { Amount, Id, MerchantTxnId, OrderId, Time } from '../http/fields.ts'
import { toIso } from '../platform/postgres/row-set.ts'
import { Resolution } from './resolution-schema.ts'

/**
 * The states of an external refund. `reserved`: it is deducted until the refunded amount shows it; `released`: its
 * failure was notified after its success, or another reading of its notification was matched; `own`: it belongs
 * to a refund of ours whose row was lost.
 */
export const EXTERNAL_STATES = [
  'reserved',
  'matched',
  'part_of_first_sight',
  'released',
  'never_happened',
  'own',
] as const

export type ExternalState = (typeof EXTERNAL_STATES)[number]

type ExternalRow = typeof externalRefunds.$inferSelect

/** An external refund with the transaction of its payment. */
export type ExternalRecord = ExternalRow & OrderFacts & { transactionId: string }

export function deriveExternalState({
  matched,
  outcome,
}: Pick<ExternalRow, 'matched' | 'outcome'>): ExternalState {
  return outcome ?? (matched ? 'matched' : 'reserved')
}

/** A refund made at the gateway's portal, as the API returns it. */
export const ExternalRefund = z
  .strictObject({
    id: z.uuid(),
    merchantCode: z.string(),
    paymentId: Id,
    transactionId: Id,
    orderId: OrderId,
    merchantTxnId: MerchantTxnId,
    amount: Amount,
    currency: z.string().nullable(),
    requestId: z
      .string()
      .nullable()
      .openapi({ description: 'As notified; null if a person entered the refund' }),
    source: z.enum(['notification', 'person']),
    state: z.enum(EXTERNAL_STATES).openapi({
      description:
        '`reserved` until the refunded amount of the payment shows it (`matched`); `part_of_first_sight`: it was refunded before the payment was first seen',
    }),
    resolution: Resolution.nullable(),
    notifiedAt: Time.nullable(),
    firstSeenAt: Time,
  })
  .openapi('ExternalRefund', {
    example: {
      id: '6f0d1c1e-0c39-4d54-9a5c-2f2f7a5b8f10',
      merchantCode: 'UFLIYL',
      paymentId: '1439211',
      transactionId: '240830080146NDTISR',
      orderId: 'DH1',
      merchantTxnId: 'T1',
      amount: '10000',
      currency: 'VND',
      requestId: '7c1f3b52-portal',
      source: 'notification',
      state: 'matched',
      resolution: null,
      notifiedAt: '2026-11-21T10:20:00.000Z',
      firstSeenAt: '2026-11-21T10:20:00.120Z',
    },
  })

export function showExternalRefund(row: ExternalRecord): z.infer<typeof ExternalRefund> {
  return {
    id: row.id,
    merchantCode: row.merchantCode,
    paymentId: row.paymentId,
    transactionId: row.transactionId,
    orderId: row.orderId,
    merchantTxnId: row.merchantTxnId,
    amount: row.amount,
    currency: row.currency,
    requestId: row.source === 'person' ? null : row.requestId,
    source: row.source,
    state: deriveExternalState(row),
    resolution: row.resolution,
    notifiedAt: toIso(row.notifiedAt),
    firstSeenAt: toIso(row.firstSeenAt),
  }
}
