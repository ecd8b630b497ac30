import type { Scope } from '../../src/access/keys.ts'
import { callWith, registerEndpoint, type Tenant } from '../support/accounts.ts'
import type { Rig } from '../support/service.ts'

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

/** A route of the API: the scope that it takes, and what a request carries. */
export type Route = {
  scope: Scope
  body?: object
  /** Each is tried, because a query can reach the rows in another way. */
  queries?: string[]
}

/** A route for one object: the status for its owner, and the problem code for others. */
export type One = Route & {
  id: keyof Ids
  owner: number
  stranger: string
  /** The code if the request names the owner's account, where it differs. */
  naming?: string
  /** Makes what the request uses up, or undoes what another has done. */
  prepare?: (rig: Rig, owner: Tenant) => Promise<Partial<Ids>>
}

/** A list, with the member that identifies an entry, and a filter that matches only the other account. */
export type List = Route & {
  id: keyof Ids
  member: string
  filter?: (other: Ids) => string
}

const OF_TRANSACTION = { id: 'transactionId', stranger: 'transaction_not_found' } as const
const OF_PAYMENT = { id: 'paymentId', stranger: 'payment_not_found' } as const
const OF_REFUND = { id: 'refundId', stranger: 'refund_not_found' } as const
const OF_DISCREPANCY = {
  scope: 'ops',
  id: 'discrepancyId',
  stranger: 'discrepancy_not_found',
} as const
const OF_ENDPOINT = {
  scope: 'webhooks:write',
  id: 'endpointId',
  stranger: 'webhook_endpoint_not_found',
} as const

const REASON = { reason: 'a test' }
const ENDPOINT = '/v1/webhook-endpoints/:endpointId'
const HOLD = '/v1/holds/:target/:id'

/** The owner requested the refund, and may not release a hold on it. */
async function clearHold({ database }: Rig, { refundId }: Tenant): Promise<Partial<Ids>> {
  await database.sql`update refunds set hold = null where refund_id = ${refundId}`
  return {}
}

async function addEndpoint(rig: Rig, owner: Tenant): Promise<Partial<Ids>> {
  const { id } = JSON.parse(await (await registerEndpoint(rig, owner)).text())
  return { endpointId: String(id) }
}

/** Every route for one object, by method and path as registered. */
export const ONES: Readonly<Record<string, One>> = {
  'GET /v1/transactions/:transactionId': {
    ...{ ...OF_TRANSACTION, scope: 'payments:read', owner: 200 },
    queries: ['', '?wait=1', '?wait=0'],
  },
  'GET /v1/transactions/:transactionId/timeline': {
    ...{ ...OF_TRANSACTION, scope: 'payments:read', owner: 200 },
    queries: ['', '?limit=1'],
  },
  'GET /v1/payments/:paymentId': { ...OF_PAYMENT, scope: 'payments:read', owner: 200 },
  'GET /v1/payments/:paymentId/external-refunds': {
    ...{ ...OF_PAYMENT, scope: 'refunds:read', owner: 200 },
  },
  'GET /v1/refunds/:refundId': {
    ...{ ...OF_REFUND, scope: 'refunds:read', owner: 200 },
    queries: ['', '?wait=0', '?wait=30', '?include=proof'],
  },
  'POST /v1/refunds/:refundId/resolution': {
    ...{ ...OF_REFUND, scope: 'ops', owner: 409 },
    body: { outcome: 'failed', ...REASON },
  },
  'POST /v1/refunds/:refundId/cancellation': {
    ...{ ...OF_REFUND, scope: 'refunds:write', owner: 409, body: REASON },
  },
  'POST /v1/refunds/:refundId/approval': { ...OF_REFUND, scope: 'refunds:approve', owner: 409 },
  'POST /v1/refunds/:refundId/decline': { ...OF_REFUND, scope: 'refunds:approve', owner: 409 },
  'POST /v1/external-refunds/:externalRefundId/resolution': {
    ...{ id: 'externalRefundId', stranger: 'external_refund_not_found', scope: 'ops', owner: 409 },
    body: { outcome: 'never_happened', ...REASON },
  },
  [`PUT ${HOLD}`]: { ...OF_REFUND, scope: 'ops', owner: 200, body: REASON },
  [`DELETE ${HOLD}`]: { ...OF_REFUND, scope: 'ops', owner: 409, body: REASON, prepare: clearHold },
  'POST /v1/discrepancies/:id/resolution': { ...OF_DISCREPANCY, owner: 409, body: REASON },
  'POST /v1/discrepancies/:id/note': { ...OF_DISCREPANCY, owner: 200, body: { text: 'a test' } },
  'POST /v1/discrepancies/:id/assignee': { ...OF_DISCREPANCY, owner: 409, body: { name: 'Linh' } },
  'POST /v1/transactions/:transactionId/surplus-refund': {
    ...{ ...OF_TRANSACTION, scope: 'refunds:write', owner: 409, queries: ['', '?dryRun=true'] },
    body: { receiver: { accountName: 'A', accountNumber: '1', swiftCode: 'ASCBVNVX' } },
  },
  'POST /v1/payments/:paymentId/refunds': {
    ...{ ...OF_PAYMENT, scope: 'refunds:write', owner: 202, queries: ['', '?dryRun=true'] },
    body: { amount: '1' },
  },
  'POST /v1/transactions/:transactionId/sync': {
    ...{ id: 'transactionId', stranger: 'merchant_not_found', scope: 'payments:read', owner: 202 },
  },
  'GET /v2/vc/virtual-cards/:virtualCardRequestId': {
    ...{ id: 'cardId', stranger: 'card_not_found', scope: 'cards:read', owner: 200 },
    naming: 'merchant_not_found',
  },
  [`GET ${ENDPOINT}/deliveries`]: { ...OF_ENDPOINT, owner: 200 },
  [`PATCH ${ENDPOINT}`]: { ...OF_ENDPOINT, owner: 200, body: { types: ['payment.created'] } },
  [`POST ${ENDPOINT}/rotate-secret`]: {
    ...{ ...OF_ENDPOINT, owner: 200, body: { previousValidForS: 0 } },
  },
  [`POST ${ENDPOINT}/deliveries/:eventId/replay`]: { ...OF_ENDPOINT, owner: 404 },
  [`POST ${ENDPOINT}/deliveries/replay`]: { ...OF_ENDPOINT, owner: 202 },
  [`POST ${ENDPOINT}/test`]: { ...OF_ENDPOINT, owner: 200 },
  [`POST ${ENDPOINT}/enable`]: { ...OF_ENDPOINT, owner: 200 },
  [`POST ${ENDPOINT}/replay`]: { ...OF_ENDPOINT, owner: 202, body: { after: '0' } },
  [`DELETE ${ENDPOINT}`]: { ...OF_ENDPOINT, owner: 204, prepare: addEndpoint },
}

export const LISTS: Readonly<Record<string, List>> = {
  'GET /v1/transactions': {
    ...{ scope: 'payments:read', id: 'transactionId', member: 'transactionId' },
  },
  'GET /v1/payments': { scope: 'payments:read', id: 'paymentId', member: 'id' },
  'GET /v1/discrepancies': { scope: 'ops', id: 'transactionId', member: 'transactionId' },
  'GET /v1/refunds': {
    ...{ scope: 'refunds:read', id: 'refundId', member: 'id' },
    filter: ({ paymentId }) => `paymentId=${paymentId}`,
  },
  'GET /v1/webhook-endpoints': { scope: 'webhooks:write', id: 'endpointId', member: 'id' },
}

/** Neither for one object nor by pages: whose they are is covered by `test/api/isolation.test.ts`. */
const OTHERS: Readonly<Record<string, Route>> = {
  'GET /v1/search': { scope: 'payments:read', queries: ['?q=T-MINE'] },
  'GET /v1/events': { scope: 'payments:read' },
  'GET /v1/events/stream': { scope: 'payments:read' },
  'GET /v2/vc/virtual-cards': { scope: 'cards:read' },
  'POST /v1/webhook-endpoints': {
    ...{ scope: 'webhooks:write', body: { url: 'https://shop.example/hook' } },
  },
}

/** Every route of the API: a new one needs a row. */
export const ROUTES: Readonly<Record<string, Route | One | List>> = { ...ONES, ...LISTS, ...OTHERS }

/** Returns the path of a route with an id of this account. */
export function fillPath(route: string, row: Route | One | List, ids: Partial<Ids>): string {
  const [, pattern = ''] = route.split(' ')
  return pattern
    .replace(':target', 'refund')
    .replace(':eventId', '999999999')
    .replace(/:(\w+)/, () => ('id' in row && ids[row.id]) || '')
}

/** Sends the request of a row to this path, with the same idempotency key for every sender. */
export function sendRow(
  rig: Rig,
  authorization: string | undefined,
  route: string,
  row: Route | One | List,
  path: string,
  idempotencyKey = 'one-text-for-all',
): Promise<Response> {
  const [method = ''] = route.split(' ')
  return callWith(rig, authorization, path, {
    method,
    headers: { 'idempotency-key': idempotencyKey },
    ...(row.body ? { body: JSON.stringify(row.body) } : {}),
  })
}
