import { z } from '@hono/zod-openapi'
import { Id, MerchantTxnId, OrderId, Time } from '../http/fields.ts'
import { toIso } from '../platform/postgres/row-set.ts'
import { DISCREPANCY_KINDS } from './kinds.ts'
import type { DiscrepancyRow } from './types.ts'

export const KindName = z.enum(Object.keys(DISCREPANCY_KINDS))

const Side = z.strictObject({
  source: z
    .string()
    .openapi({ description: 'service, query, earlier_query, notification, settings or person' }),
  says: z.string().openapi({ description: 'Amounts in it are exact decimals' }),
})

/** A discrepancy as the API returns it. */
export const Discrepancy = z
  .strictObject({
    id: z.string(),
    kind: KindName,
    merchantCode: z.string(),
    transactionId: Id,
    orderId: OrderId,
    merchantTxnId: MerchantTxnId,
    paymentId: Id.nullable(),
    refundId: z.uuid().nullable(),
    ours: Side,
    theirs: Side,
    times: z.int().openapi({ description: 'How often it was observed' }),
    firstSeenAt: Time,
    lastSeenAt: Time,
    resolvedAt: Time.nullable().openapi({
      description:
        'When the sides agreed again, or a person resolved it; null while they differ, and for kinds where agreement cannot be detected',
    }),
    resolution: z.strictObject({ by: z.string(), reason: z.string() }).nullable().openapi({
      description:
        "A person's decision: the name of the API key or the person, and the reason. Null when the sides agreed again by themselves",
    }),
    assignee: z.string().nullable(),
    notes: z.array(z.strictObject({ at: Time, by: z.string(), text: z.string() })),
  })
  .openapi('Discrepancy', {
    example: {
      id: '17',
      kind: 'answer_went_backwards',
      merchantCode: 'UFLIYL',
      transactionId: '240830080146NDTISR',
      orderId: 'DH1',
      merchantTxnId: 'T1',
      paymentId: '1439211',
      refundId: null,
      ours: { source: 'earlier_query', says: 'status SUCCESS' },
      theirs: { source: 'query', says: 'status FAILED' },
      times: 1,
      firstSeenAt: '2026-11-22T09:33:05.120Z',
      lastSeenAt: '2026-11-22T09:33:05.120Z',
      resolvedAt: null,
      resolution: null,
      assignee: null,
      notes: [],
    },
  })

export type DiscrepancyView = z.infer<typeof Discrepancy>

export function showDiscrepancy(row: DiscrepancyRow): DiscrepancyView {
  const { kind, merchantCode, transactionId, orderId, merchantTxnId, paymentId, refundId, times } =
    row
  const known: Record<string, { ours: string; theirs: string }> = DISCREPANCY_KINDS
  const sides = known[kind] ?? { ours: 'service', theirs: 'query' }
  return {
    id: String(row.id),
    kind,
    merchantCode,
    transactionId,
    orderId,
    merchantTxnId,
    paymentId,
    refundId,
    ours: { source: sides.ours, says: row.ours },
    theirs: { source: sides.theirs, says: row.theirs },
    times,
    firstSeenAt: toIso(row.at),
    lastSeenAt: toIso(row.lastSeenAt ?? row.at),
    resolvedAt: toIso(row.resolvedAt),
    resolution:
      row.resolvedBy === null ? null : { by: row.resolvedBy, reason: row.resolution ?? '' },
    assignee: row.assignee,
    notes: row.notes,
  }
}
