import { ROLES, type Role } from '../../src/access/types.ts'

/** The ids in the paths of the console's routes, by parameter; `id` stands for the object that the path names. */
export type RouteIds = {
  merchantCode: string
  transactionId: string
  paymentId: string
  refundId: string
  discrepancyId: string
  endpointId: string
  personId: string
  sessionId: string
}

/** A route of the console: who may use it, and what its form carries. */
export type RouteRow = {
  /** The roles that may; all others get 403. */
  roles: readonly Role[]
  /** What `:id` stands for. */
  id?: keyof RouteIds
  fields?: (ids: RouteIds) => Record<string, string>
  /** It makes something new in the account that it names, whatever the other ids. */
  isNew?: true
  /** It belongs to the person who asks, so nobody else's ids lead to it. */
  isOwn?: true
}

const ADMIN = ['admin'] as const
const OPERATORS = ['operator', 'admin'] as const
const APPROVERS = ['approver', 'admin'] as const
const AGENTS = ['agent', 'admin'] as const

const OF_DISCREPANCY = { roles: OPERATORS, id: 'discrepancyId' } as const
const DISCREPANCY = '/console/discrepancies/:merchant/:id'
const OF_DISCREPANCIES = {
  [`GET ${DISCREPANCY}`]: OF_DISCREPANCY,
  [`POST ${DISCREPANCY}/resolution`]: OF_DISCREPANCY,
  [`POST ${DISCREPANCY}/external`]: OF_DISCREPANCY,
  [`POST ${DISCREPANCY}/note`]: OF_DISCREPANCY,
  [`POST ${DISCREPANCY}/assignee`]: OF_DISCREPANCY,
}

/** Every route behind the sign-in, by method and path as registered: a new one needs a row here. */
export const CONSOLE_ROUTES: Readonly<Record<string, RouteRow>> = {
  'GET /console': { roles: ROLES },
  'POST /console/transactions': {
    ...{ roles: ROLES, isNew: true },
    fields: ({ transactionId, merchantCode }) => ({ transactionId, merchantCode }),
  },
  'GET /console/transactions': { roles: ROLES },
  'GET /console/payments': { roles: ROLES },
  'GET /console/refunds': { roles: ROLES },
  'GET /console/discrepancies': { roles: OPERATORS },
  'GET /console/audit': { roles: OPERATORS },
  'GET /console/health': { roles: OPERATORS },
  'GET /console/transactions/:merchant/:id': { roles: ROLES, id: 'transactionId' },
  'POST /console/transactions/:merchant/:id/sync': {
    ...{ roles: ROLES, isNew: true, id: 'transactionId' },
  },
  'POST /console/payments/:merchant/:id/hold': {
    ...{ roles: OPERATORS, id: 'paymentId' },
    fields: () => ({ held: 'true', reason: 'a test' }),
  },
  'POST /console/refunds/:merchant/:refundId/hold': {
    roles: OPERATORS,
    fields: () => ({ held: 'true', reason: 'a test' }),
  },
  'GET /console/payments/:merchant/:id/refund': { roles: AGENTS, id: 'paymentId' },
  'POST /console/payments/:merchant/:id/refund': {
    ...{ roles: AGENTS, id: 'paymentId' },
    fields: () => ({ amountKind: 'all' }),
  },
  'GET /console/transactions/:merchant/:id/surplus': { roles: AGENTS, id: 'transactionId' },
  'POST /console/transactions/:merchant/:id/surplus': {
    ...{ roles: AGENTS, id: 'transactionId' },
    fields: () => ({ amountKind: 'all' }),
  },
  'GET /console/reasons': { roles: ADMIN },
  'POST /console/reasons': {
    ...{ roles: ADMIN, isNew: true },
    fields: ({ merchantCode, personId }) => ({
      ...{ merchant: merchantCode, reasons: `Reason ${personId.slice(0, 8)}` },
    }),
  },
  'GET /console/tasks': { roles: ROLES },
  'GET /console/refunds/:merchant/:refundId': { roles: ROLES },
  'POST /console/refunds/:merchant/:refundId/approval': { roles: APPROVERS },
  'POST /console/refunds/:merchant/:refundId/resolution': { roles: OPERATORS },
  'POST /console/refunds/:merchant/:refundId/cancellation': { roles: AGENTS },
  'POST /console/refunds/:merchant/:refundId/note': { roles: OPERATORS },
  'POST /console/refunds/:merchant/:refundId/assignee': { roles: OPERATORS },
  ...OF_DISCREPANCIES,
  'POST /console/webhooks/:endpointId/enable': { roles: OPERATORS },
  'GET /console/account': { roles: ROLES, isOwn: true },
  'POST /console/account/reading': {
    ...{ roles: ROLES, isOwn: true },
    fields: () => ({ language: 'en', timeZone: 'UTC' }),
  },
  'POST /console/account/sessions/:sessionId/end': { roles: ROLES, isOwn: true },
  'POST /console/sign-out': { roles: ROLES, isOwn: true },
  'GET /console/people': { roles: ADMIN },
  'POST /console/people': {
    ...{ roles: ADMIN, isNew: true },
    fields: ({ personId, merchantCode }) => ({
      ...{ name: `Added ${personId}`, email: '', 'role-viewer': 'on' },
      [`merchant-${merchantCode}`]: 'on',
    }),
  },
  'GET /console/people/:personId': { roles: ADMIN },
  'POST /console/people/:personId/link': { roles: ADMIN },
  'POST /console/people/:personId/sessions/:sessionId/end': { roles: ADMIN },
  'POST /console/people/:personId/end': { roles: ADMIN },
}
