import { createRoute, z } from '@hono/zod-openapi'
import { narrowMerchants, withScope } from '../access/authenticate.ts'
import { type Listing, readPage, serveListing } from '../access/listing.ts'
import { formatWakeKey } from '../db/transaction-key.ts'
import { createRouter } from '../http/app.ts'
import { describeRefusals, describeResponse } from '../http/describe.ts'
import { Id, MerchantCode, WaitParameter } from '../http/fields.ts'
import { cutPage, DEFAULT_LIMIT, describePage, pageParameters, respondPage } from '../http/list.ts'
import { findPayment } from '../payments/find-payments.ts'
import { withEitherSignal } from '../platform/concurrency/timing.ts'
import type { TransactionsContext } from '../transactions/types.ts'
import {
  type ExternalRecord,
  ExternalRefund,
  listExternalRefunds,
  showExternalRefund,
} from './external-view.ts'
import { type FoundRefund, findRefund, listRefunds, QUERY } from './find.ts'
import { STATES } from './lifecycle.ts'
import { readProof } from './proof.ts'
import { RefundId } from './request-schema.ts'
import { Refund, type RefundView, showRefund } from './view.ts'

export const REFUNDS: Listing<typeof QUERY, RefundView> = {
  name: 'refunds',
  scope: 'refunds:read',
  query: QUERY,
  idForm: z.uuid(),
  schema: Refund,
  async read(ctx, filter, limit, after) {
    const rows = await listRefunds(ctx, filter, limit, after)
    return cutPage(rows, limit, locate, (found) => showRefund(ctx.encryption, found))
  },
}

const locate = ({ refund: { requestedAt, refundId, merchantCode } }: FoundRefund) => ({
  time: requestedAt,
  id: refundId,
  merchantCode,
})

/** Waits at most `ms` until a refund has ended or needs a decision, and returns it as it is then. */
function waitForRefund(
  ctx: Pick<TransactionsContext, 'db' | 'lifecycle' | 'transactionWaiters'>,
  first: FoundRefund,
  ms: number,
  signal: AbortSignal,
): Promise<FoundRefund> {
  const until = performance.now() + ms
  return withEitherSignal([signal, ctx.lifecycle.stopping], async (end) => {
    for (let { refund } = first; ; ) {
      const watch = ctx.transactionWaiters.watch(formatWakeKey(refund))
      try {
        const found = await findRefund(ctx, [refund.merchantCode], refund.refundId)
        const left = until - performance.now()
        if (STATES[found.refund.status].over || left <= 0 || end.aborted) return found
        const hasMoved = found.refund.transactionId !== refund.transactionId
        refund = found.refund
        if (!hasMoved) await watch.wait(left, end)
      } finally {
        watch.cancel()
      }
    }
  })
}

const readOne = createRoute({
  method: 'get',
  path: '/v1/refunds/{refundId}',
  operationId: 'readRefund',
  summary: 'Get a refund; `wait` ends once it has ended or is in `needs_review`',
  tags: ['Refunds'],
  ...withScope('refunds:read'),
  request: {
    params: z.object({ refundId: RefundId }),
    query: z.strictObject({
      wait: WaitParameter,
      include: z
        .enum(['proof'])
        .optional()
        .openapi({ description: 'Adds the evidence for the status' }),
      merchantCode: MerchantCode,
    }),
  },
  responses: {
    200: describeResponse('The refund', Refund),
    ...describeRefusals('refund_not_found'),
  },
})

const list = createRoute({
  method: 'get',
  path: '/v1/refunds',
  operationId: 'listRefunds',
  summary: 'List refunds, newest first',
  tags: ['Refunds'],
  ...withScope('refunds:read'),
  request: {
    query: z.strictObject({ ...REFUNDS.query, merchantCode: MerchantCode, ...pageParameters }),
  },
  responses: { 200: describePage(Refund), ...describeRefusals('cursor_expired') },
})

const listExternal = createRoute({
  method: 'get',
  path: '/v1/payments/{paymentId}/external-refunds',
  operationId: 'listExternalRefunds',
  summary: "Refunds of a payment that were made at the gateway's portal, newest first",
  tags: ['Refunds'],
  ...withScope('refunds:read'),
  request: {
    params: z.object({ paymentId: Id }),
    query: z.strictObject({ merchantCode: MerchantCode, ...pageParameters }),
  },
  responses: {
    200: describePage(ExternalRefund),
    ...describeRefusals('payment_not_found', 'ambiguous_merchant', 'cursor_expired'),
  },
})

export function refundRoutes(ctx: TransactionsContext) {
  return createRouter()
    .openapi(readOne, async (c) => {
      const { wait, include, merchantCode } = c.req.valid('query')
      const merchants = narrowMerchants(c.get('access'), merchantCode)
      const first = await findRefund(ctx, merchants, c.req.valid('param').refundId)
      const found =
        wait === undefined ? first : await waitForRefund(ctx, first, wait * 1000, c.req.raw.signal)
      const proof = include === 'proof' ? { proof: await readProof(ctx, found) } : {}
      return c.json({ ...showRefund(ctx.encryption, found), ...proof }, 200)
    })
    .openapi(list, (c) => serveListing(ctx, c, REFUNDS, c.req.valid('query')))
    .openapi(listExternal, async (c) => {
      const { limit = DEFAULT_LIMIT, cursor, merchantCode } = c.req.valid('query')
      const merchants = narrowMerchants(c.get('access'), merchantCode)
      const { payment } = await findPayment(ctx, merchants, c.req.valid('param').paymentId)
      const page = await ctx.db.reads.run(c.get('access').chainId, ({ sql }) =>
        readPage(sql, cursor, z.uuid(), async (after) => {
          const rows = await listExternalRefunds(sql, payment, limit, after)
          return cutPage({ rows }, limit, locateExternal, showExternalRefund)
        }),
      )
      return respondPage(c, page, ExternalRefund)
    })
}

function locateExternal({ firstSeenAt, id, merchantCode }: ExternalRecord) {
  return { time: firstSeenAt, id, merchantCode }
}
