import { z } from '@hono/zod-openapi'
import { Amount, Id, MerchantTxnId, OrderId, Time } from '../http/fields.ts'
import { AccountHold, Hold, type StoredHold } from '../payments/view.ts'
import type { Encryption } from '../platform/crypto/encryption.ts'
import { toIso } from '../platform/postgres/row-set.ts'
import { Resolution } from './external-view.ts'
import { type RefundRecord, RefundState } from './find.ts'
import { STATES } from './lifecycle.ts'
import { Proof } from './proof.ts'
import { decryptReceiver, ShownReceiver } from './receiver.ts'

const MaskedReceiver = ShownReceiver.openapi({ description: 'With a masked account number' })

const Approval = z
  .strictObject({
    decision: z.enum(['approved', 'declined']).nullable().openapi({ description: 'Null for none' }),
    by: z.string().nullable().openapi({ description: 'The name of the API key, or of the person' }),
    reason: z.string().nullable(),
    at: Time.nullable(),
  })
  .openapi('RefundApproval')

export const Refund = z
  .strictObject({
    id: z.uuid().openapi({ description: 'Also the request id sent to the gateway' }),
    paymentId: Id,
    transactionId: Id,
    merchantCode: z.string(),
    orderId: OrderId,
    merchantTxnId: MerchantTxnId,
    amount: Amount,
    reason: z.string().nullable(),
    status: RefundState,
    currency: z.string().nullable(),
    receiver: MaskedReceiver.nullable(),
    inferred: z.boolean().openapi({
      description:
        'Its success was concluded from the refunded amount of the payment. Its amount stays reserved until a notification or a person confirms it',
    }),
    gatewayRefundId: z.string().nullable(),
    gatewayReference: z.string().nullable().openapi({
      description:
        "The gateway's reference of the refund, to quote to it or to the customer's bank: the transaction id in the notification of the refund, or else `gatewayRefundId`",
    }),
    gatewayReferenceSource: z
      .enum(['notification', 'answer'])
      .nullable()
      .openapi({ description: 'Where `gatewayReference` was learnt; `answer`: to the request' }),
    fee: Amount.nullable().openapi({
      description: 'What the gateway charged for the refund, as notified; null while unknown',
    }),
    failure: z
      .strictObject({
        source: z.enum(['gateway', 'service', 'merchant']),
        code: z.string(),
        message: z.string(),
      })
      .nullable(),
    hold: Hold.nullable().openapi({ description: 'While it is set, the refund is not sent' }),
    accountHold: AccountHold,
    resolution: Resolution.nullable(),
    requestedBy: z.string().openapi({ description: 'The name of the API key, or of the person' }),
    onBehalfOf: z.string().nullable(),
    metadata: z.record(z.string(), z.string()).openapi({ description: 'As given in the request' }),
    approval: Approval.nullable().openapi({ description: 'Null for one that needs no approval' }),
    selfDecided: z.boolean().openapi({
      description:
        'Whoever requested it, or had decided it before, decided its outcome or ended what held it back, because nobody else could',
    }),
    requestedAt: Time,
    updatedAt: Time,
    proof: Proof.optional(),
  })
  .openapi('Refund', {
    example: {
      id: '0d7c9a8e-5d3c-4f0e-9a41-6f1f6f6f2b11',
      paymentId: '1439211',
      transactionId: '240830080146NDTISR',
      merchantCode: 'UFLIYL',
      orderId: 'DH1',
      merchantTxnId: 'T1',
      amount: '10000',
      reason: 'returned goods',
      status: 'pending',
      currency: 'VND',
      receiver: {
        accountName: 'NGUYEN VAN A',
        accountNumber: '•••• 6789',
        swiftCode: 'ASCBVNVX',
      },
      inferred: false,
      gatewayRefundId: null,
      gatewayReference: null,
      gatewayReferenceSource: null,
      fee: null,
      failure: null,
      hold: null,
      resolution: null,
      requestedBy: 'shop',
      onBehalfOf: 'Tran Thi B',
      metadata: { returnId: 'R-17' },
      approval: null,
      selfDecided: false,
      requestedAt: '2026-11-21T10:20:00.000Z',
      updatedAt: '2026-11-21T10:20:00.000Z',
    },
  })

/** Shown for a receiver whose data key is missing. */
export const UNREADABLE = {
  accountName: '(unreadable)',
  accountNumber: '••••',
  swiftCode: '(unreadable)',
}

export type RefundView = z.infer<typeof Refund>

export type ShownRefund = RefundRecord & {
  /** Only of a refund that is read by itself. */
  accountHold?: StoredHold
}

export function showRefund(
  encryption: Pick<Encryption, 'decrypt'>,
  { refund: r, order, accountHold }: ShownRefund,
): RefundView {
  return {
    id: r.refundId,
    paymentId: r.paymentId,
    transactionId: r.transactionId,
    merchantCode: r.merchantCode,
    orderId: order.orderId,
    merchantTxnId: order.merchantTxnId,
    amount: r.amount,
    reason: r.reason,
    status: STATES[r.status].shown,
    currency: order.currency,
    receiver:
      r.receiverShown &&
      (decryptReceiver(encryption, r.receiverShown, 'receiver_shown', r.refundId) ?? UNREADABLE),
    inferred: r.inferred,
    gatewayRefundId: r.gatewayRefundId,
    gatewayReference: r.notifiedReference ?? r.gatewayRefundId,
    gatewayReferenceSource: showReferenceSource(r),
    fee: r.fee,
    failure: r.failureSource && {
      source: r.failureSource,
      code: r.failureReason ?? '',
      message: r.failureMessage ?? '',
    },
    hold: r.hold,
    ...(accountHold ? { accountHold } : {}),
    resolution: r.resolution,
    requestedBy: r.requestedBy,
    onBehalfOf: r.onBehalfOf,
    metadata: r.metadata,
    approval: r.needsApproval ? showApproval(r) : null,
    selfDecided: r.selfDecided,
    requestedAt: toIso(r.requestedAt),
    updatedAt: toIso(r.updatedAt),
  }
}

function showReferenceSource({ notifiedReference, gatewayRefundId }: ShownRefund['refund']) {
  if (notifiedReference !== null) return 'notification' as const
  return gatewayRefundId === null ? null : ('answer' as const)
}

function showApproval({ decidedBy, decidedReason, approvedAt, declinedAt }: ShownRefund['refund']) {
  const decision = approvedAt ? ('approved' as const) : declinedAt ? ('declined' as const) : null
  const at = approvedAt ?? declinedAt
  return { decision, by: decidedBy, reason: decidedReason, at: at && toIso(at) }
}

export const RefundPreview = z
  .strictObject({
    wouldSend: z.strictObject({
      amount: Amount,
      currency: z.string().nullable(),
      paymentId: Id,
      receiver: MaskedReceiver.optional(),
    }),
    refundableAmount: Amount,
    refundableAfter: Amount,
    hints: z.array(z.strictObject({ path: z.string(), message: z.string() })).openapi({
      description:
        'What looks wrong with the receiver, although it is accepted: check it before the refund is requested',
      example: [
        { path: 'receiver.swiftCode', message: 'is not a SWIFT/BIC code of 8 or 11 characters' },
      ],
    }),
  })
  .openapi('RefundPreview')

export const SurplusPreview = z
  .strictObject({
    ...RefundPreview.shape,
    surplusAmount: Amount.openapi({
      description:
        'What was paid beyond one success of the order and is not refunded; one refund takes as much of it as one payment holds',
    }),
  })
  .openapi('SurplusPreview')
