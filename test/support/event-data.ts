import type { EventType } from '../../src/events/event.ts'

const TIME = '2026-11-21T09:33:03.254Z'
const ORDER = { merchantCode: 'UFLIYL', orderId: 'DH1', merchantTxnId: 'T1' }
const AT = { firstSeenAt: TIME, updatedAt: TIME }

const PAYMENT = {
  id: 'P-1',
  transactionId: 'T-1',
  ...ORDER,
  status: 'SUCCESS',
  amount: '100',
  refundedAmount: '0',
  refundableAmount: '100',
  currency: 'VND',
  paymentMethod: 'CC',
  unrecognised: false,
  missing: false,
  unreadable: false,
  hold: null,
  asOf: TIME,
  ...AT,
}

const TRANSACTION = {
  transactionId: 'T-1',
  ...ORDER,
  currency: 'VND',
  state: 'paid',
  paidAmount: '100',
  expectedAmount: '100',
  expectedAmountSource: 'notification',
  amountMatches: true,
  refundedAmount: '0',
  duplicatePayment: false,
  sameOrder: [],
  payments: [PAYMENT],
  final: true,
  sync: { status: 'idle', asOf: TIME, nextAttemptAt: null, attempts: 0, lastError: null },
  ipnCount: 1,
  ...AT,
}

const REFUND = {
  id: '0d7c9a8e-5d3c-4f0e-9a41-6f1f6f6f2b11',
  paymentId: 'P-1',
  transactionId: 'T-1',
  ...ORDER,
  amount: '10',
  reason: null,
  status: 'pending',
  currency: 'VND',
  receiver: null,
  inferred: false,
  gatewayRefundId: null,
  gatewayReference: null,
  gatewayReferenceSource: null,
  fee: null,
  requestedBy: 'test',
  onBehalfOf: null,
  metadata: {},
  approval: null,
  selfDecided: false,
  failure: null,
  hold: null,
  resolution: null,
  requestedAt: TIME,
  updatedAt: TIME,
}

const DISCREPANCY = {
  id: '1',
  kind: 'payment_missing',
  transactionId: 'T-1',
  ...ORDER,
  paymentId: 'P-1',
  refundId: null,
  ours: { source: 'earlier_query', says: 'listed' },
  theirs: { source: 'query', says: 'not listed' },
  times: 1,
  firstSeenAt: TIME,
  lastSeenAt: TIME,
  resolvedAt: null,
  resolution: null,
  assignee: null,
  notes: [],
}

const EXTERNAL_REFUND = {
  id: '00000000-0000-4000-8000-000000000002',
  paymentId: 'P-1',
  transactionId: 'T-1',
  ...ORDER,
  amount: '30',
  currency: 'VND',
  requestId: 'portal-1',
  source: 'notification',
  state: 'reserved',
  resolution: null,
  notifiedAt: TIME,
  firstSeenAt: TIME,
}

const ENDPOINT = {
  id: '00000000-0000-4000-8000-000000000003',
  merchantCode: 'UFLIYL',
  owner: 'shop',
  url: 'https://shop.example/hooks',
  types: ['payment.updated'],
  apiVersion: '2026-11',
  createdAt: TIME,
  failingSince: TIME,
  lastError: 'answered 500',
  previousSecretValidUntil: null,
  disabledAt: null,
  disabledReason: null,
  pending: 1,
}

/** Sample data for an event of a type. */
export const EVENT_DATA: Record<EventType, object> = {
  'payment.created': PAYMENT,
  'payment.updated': PAYMENT,
  'transaction.paid': TRANSACTION,
  'transaction.updated': TRANSACTION,
  'transaction.final': TRANSACTION,
  'refund.created': REFUND,
  'refund.updated': REFUND,
  'external_refund.found': EXTERNAL_REFUND,
  'external_refund.updated': EXTERNAL_REFUND,
  'sync.abandoned': TRANSACTION,
  'discrepancy.found': DISCREPANCY,
  'discrepancy.updated': DISCREPANCY,
  'webhook_endpoint.failing': ENDPOINT,
  'webhook_endpoint.disabled': ENDPOINT,
  'webhook_endpoint.recovered': ENDPOINT,
}
