import { callAs, type Tenant } from './accounts.ts'
import type { Rig } from './service.ts'

/** The ids of an account's objects. */
export type Ids = Pick<
  Tenant,
  | 'transactionId'
  | 'paymentId'
  | 'refundId'
  | 'cardId'
  | 'endpointId'
  | 'discrepancyId'
  | 'externalRefundId'
>

/** A route for one object: the status for its owner, and the problem code for others. */
export type One = {
  id: keyof Ids
  owner: number
  stranger: string
  /** The code if the request names the owner's account, where it differs. */
  naming?: string
  body?: object
  /** Each is tried, because a query can reach the rows in another way. */
  queries?: string[]
}

const OF_REFUND = { id: 'refundId', stranger: 'refund_not_found' } as const
const OF_DISCREPANCY = { id: 'discrepancyId', stranger: 'discrepancy_not_found' } as const
const OF_ENDPOINT = { id: 'endpointId', stranger: 'webhook_endpoint_not_found' } as const

/**
 * Every merchant route, by method and path as registered: a new one needs a row here. Reads come first, because
 * the effects of the others would show in them.
 */
export const ONES: Record<string, One> = {
  'GET /v1/transactions/:transactionId': {
    id: 'transactionId',
    owner: 200,
    stranger: 'transaction_not_found',
    queries: ['', '?wait=0', '?wait=30'],
  },
  'GET /v1/transactions/:transactionId/timeline': {
    id: 'transactionId',
    owner: 200,
    stranger: 'transaction_not_found',
    queries: ['', '?limit=1'],
  },
  'GET /v1/payments/:paymentId': { id: 'paymentId', owner: 200, stranger: 'payment_not_found' },
  'GET /v1/payments/:paymentId/external-refunds': {
    id: 'paymentId',
    owner: 200,
    stranger: 'payment_not_found',
  },
  'GET /v1/refunds/:refundId': {
    ...OF_REFUND,
    owner: 200,
    queries: ['', '?wait=0', '?wait=30', '?include=proof'],
  },
  'POST /v1/refunds/:refundId/resolution': {
    ...OF_REFUND,
    owner: 409,
    body: { outcome: 'failed', reason: 'a test' },
  },
  'POST /v1/refunds/:refundId/cancellation': {
    ...OF_REFUND,
    owner: 409,
    body: { reason: 'a test' },
  },
  'POST /v1/refunds/:refundId/approval': { ...OF_REFUND, owner: 409 },
  'POST /v1/refunds/:refundId/decline': { ...OF_REFUND, owner: 409 },
  'POST /v1/external-refunds/:externalRefundId/resolution': {
    id: 'externalRefundId',
    owner: 409,
    stranger: 'external_refund_not_found',
    body: { outcome: 'never_happened', reason: 'a test' },
  },
  'DELETE /v1/holds/:target/:id': { ...OF_REFUND, owner: 409, body: { reason: 'a test' } },
  'PUT /v1/holds/:target/:id': { ...OF_REFUND, owner: 200, body: { reason: 'a test' } },
  'POST /v1/discrepancies/:id/resolution': {
    ...OF_DISCREPANCY,
    owner: 409,
    body: { reason: 'a test' },
  },
  'POST /v1/discrepancies/:id/note': { ...OF_DISCREPANCY, owner: 200, body: { text: 'a test' } },
  'POST /v1/discrepancies/:id/assignee': {
    ...OF_DISCREPANCY,
    owner: 409,
    body: { name: 'somebody' },
  },
  'POST /v1/transactions/:transactionId/surplus-refund': {
    id: 'transactionId',
    owner: 409,
    stranger: 'transaction_not_found',
    body: {
      receiver: { accountName: 'A', accountNumber: '1', swiftCode: 'ASCBVNVX' },
    },
  },
  'POST /v1/payments/:paymentId/refunds': {
    id: 'paymentId',
    owner: 202,
    stranger: 'payment_not_found',
    body: { amount: '1' },
  },
  'POST /v1/transactions/:transactionId/sync': {
    id: 'transactionId',
    owner: 202,
    stranger: 'merchant_not_found',
  },
  'GET /v2/vc/virtual-cards/:virtualCardRequestId': {
    id: 'cardId',
    owner: 200,
    stranger: 'card_not_found',
    naming: 'merchant_not_found',
  },
  'GET /v1/webhook-endpoints/:endpointId/deliveries': { ...OF_ENDPOINT, owner: 200 },
  'PATCH /v1/webhook-endpoints/:endpointId': {
    ...OF_ENDPOINT,
    owner: 200,
    body: { types: ['payment.created'] },
  },
  'POST /v1/webhook-endpoints/:endpointId/rotate-secret': {
    ...OF_ENDPOINT,
    owner: 200,
    body: { previousValidForS: 0 },
  },
  'POST /v1/webhook-endpoints/:endpointId/deliveries/:eventId/replay': {
    ...OF_ENDPOINT,
    owner: 404,
  },
  'POST /v1/webhook-endpoints/:endpointId/deliveries/replay': { ...OF_ENDPOINT, owner: 202 },
  'POST /v1/webhook-endpoints/:endpointId/test': { ...OF_ENDPOINT, owner: 200 },
  'POST /v1/webhook-endpoints/:endpointId/enable': { ...OF_ENDPOINT, owner: 200 },
  'POST /v1/webhook-endpoints/:endpointId/replay': {
    ...OF_ENDPOINT,
    owner: 202,
    body: { after: '0' },
  },
}

/** Lists, with the member that identifies an entry, and a filter that matches only the other account. */
export const LISTS: Record<
  string,
  { id: keyof Ids; member: string; filter?: (other: Ids) => string }
> = {
  'GET /v1/transactions': { id: 'transactionId', member: 'transactionId' },
  'GET /v1/payments': { id: 'paymentId', member: 'id' },
  'GET /v1/discrepancies': { id: 'transactionId', member: 'transactionId' },
  'GET /v1/refunds': {
    id: 'refundId',
    member: 'id',
    filter: ({ paymentId }) => `paymentId=${paymentId}`,
  },
  'GET /v1/webhook-endpoints': { id: 'endpointId', member: 'id' },
}

/** Sends the request of a row, with the same idempotency key for every sender. */
export function sendRow(
  rig: Rig,
  asker: { key: string },
  route: string,
  ids: Partial<Ids>,
  row: Partial<One> = {},
  query = '',
) {
  const [method = '', pattern = ''] = route.split(' ')
  const path = pattern
    .replace(':target', 'refund')
    .replace(':eventId', '999999999')
    .replace(/:(\w+)/, () => (row.id && ids[row.id]) ?? '')
  return callAs(rig, asker, path + query, {
    method,
    headers: { 'idempotency-key': `one-text-for-both-${ids.paymentId}` },
    ...(row.body ? { body: JSON.stringify(row.body) } : {}),
  })
}
