import { z } from '@hono/zod-openapi'
import type { NewEvent } from '../events/record-events.ts'
import { Amount, Id, MerchantTxnId, OrderId, Time } from '../http/fields.ts'
import { matchesEtag } from '../http/raw-response.ts'
import { compareAmounts } from '../money.ts'
import { Payment, showPayment } from '../payments/view.ts'
import { toIso } from '../platform/postgres/row-set.ts'
import type {
  FoundTransaction,
  ShownTransaction,
  ShownWithPayments,
  TransactionWithPayments,
} from './types.ts'

const Sync = z
  .strictObject({
    status: z
      .enum(['queued', 'idle', 'retrying', 'abandoned', 'unconfirmed'])
      .describe(
        'unconfirmed: only ever asked for by `POST …/sync`, and unknown to the gateway; in no list, and deleted `SYNC_REPOLL_FOR_MS` after the last request',
      ),
    asOf: Time.nullable().describe('When the query was sent whose answer is shown'),
    nextAttemptAt: Time.nullable(),
    attempts: z.int().describe('Failed queries in a row'),
    lastError: z.string().nullable(),
  })
  .openapi('Sync')

export const Transaction = z
  .strictObject({
    transactionId: Id,
    merchantCode: z.string(),
    orderId: OrderId,
    merchantTxnId: MerchantTxnId,
    currency: z.string().nullable(),
    state: z.enum(['pending', 'paid', 'partially_refunded', 'refunded', 'failed']),
    paidAmount: Amount,
    expectedAmount: Amount.nullable().describe(
      "The order's amount as a verified notification states it; null if none does",
    ),
    expectedAmountSource: z
      .enum(['notification'])
      .nullable()
      .describe('Where `expectedAmount` comes from'),
    amountMatches: z
      .boolean()
      .nullable()
      .describe(
        'Whether `paidAmount` is exactly `expectedAmount`; null while nothing is paid, and if no amount is expected',
      ),
    refundedAmount: Amount,
    duplicatePayment: z.boolean().describe('More than one payment succeeded'),
    sameOrder: z
      .array(Id)
      .describe(
        'Other transactions with the same verified order id that are paid as well: the customer probably paid twice',
      ),
    payments: z.array(Payment),
    final: z.boolean().describe('No further change is expected without a new request'),
    sync: Sync,
    ipnCount: z.int().describe('Notifications received, repeated deliveries included'),
    firstSeenAt: Time,
    updatedAt: Time,
  })
  .openapi('Transaction', {
    example: {
      transactionId: '240830080146NDTISR',
      merchantCode: 'UFLIYL',
      ...{ orderId: 'DH1', merchantTxnId: 'T1', currency: 'VND', state: 'pending' as const },
      ...{ paidAmount: '0', refundedAmount: '0', duplicatePayment: false, sameOrder: [] },
      expectedAmount: '20000000',
      expectedAmountSource: 'notification',
      amountMatches: null,
      payments: [],
      final: false,
      sync: {
        status: 'queued',
        asOf: '2026-11-21T09:33:03.230Z',
        nextAttemptAt: '2026-11-21T09:33:08.230Z',
        ...{ attempts: 0, lastError: null },
      },
      ipnCount: 1,
      firstSeenAt: '2026-11-21T09:33:03.213Z',
      updatedAt: '2026-11-21T09:33:03.254Z',
    },
  })

export type TransactionView = z.infer<typeof Transaction>

export function showTransaction({ transaction: t, payments }: ShownWithPayments): TransactionView {
  return {
    transactionId: t.transactionId,
    merchantCode: t.merchantCode,
    orderId: t.orderId,
    merchantTxnId: t.merchantTxnId,
    currency: t.currency,
    state: t.state,
    paidAmount: t.paidAmount,
    expectedAmount: t.expectedAmount,
    expectedAmountSource: t.expectedAmount === null ? null : 'notification',
    amountMatches: matchesExpected(t),
    refundedAmount: t.refundedAmount,
    duplicatePayment: t.duplicatePayment,
    sameOrder: t.sameOrder,
    payments: payments.map((payment) => showPayment(payment, t)),
    final: t.final,
    sync: {
      status: deriveSyncStatus(t),
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

export function buildTransactionEvent(
  type: NewEvent['type'],
  found: TransactionWithPayments,
): NewEvent {
  const { merchantCode, transactionId } = found.transaction
  return { merchantCode, transactionId, type, data: showTransaction(found) }
}

/** Weak, because `sync`, `ipnCount` and `asOf` may differ. A restore may repeat a version, but in another epoch. */
const formatEtag = ({ transaction: { version }, epoch }: FoundTransaction) =>
  `W/"${epoch}.${version}"`

export function isUnchanged(found: FoundTransaction, ifNoneMatch: string | undefined): boolean {
  return matchesEtag(ifNoneMatch, formatEtag(found))
}

export function answerFound(found: FoundTransaction, ifNoneMatch: string | undefined) {
  const headers = { etag: formatEtag(found), 'cache-control': 'private, no-cache' }
  if (isUnchanged(found, ifNoneMatch)) return { status: 304, headers, body: null } as const
  const body = JSON.stringify(showTransaction(found))
  const ofBody = { ...headers, 'content-type': 'application/json' }
  return { status: 200, headers: ofBody, body } as const
}

function matchesExpected({ state, paidAmount, expectedAmount }: ShownTransaction): boolean | null {
  if (expectedAmount === null || state === 'pending' || state === 'failed') return null
  return paidAmount === expectedAmount || compareAmounts(paidAmount, expectedAmount) === 0
}

function deriveSyncStatus(t: ShownTransaction): z.infer<typeof Sync>['status'] {
  if (t.unconfirmed) return 'unconfirmed'
  if (t.abandonedAt !== null) return 'abandoned'
  if (t.dueAt === null) return 'idle'
  return t.attempts > 0 ? 'retrying' : 'queued'
}
