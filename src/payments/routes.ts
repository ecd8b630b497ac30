import { createRoute, z } from '@hono/zod-openapi'
import { narrowMerchants, withScope } from '../access/authenticate.ts'
import type { Context } from '../context.ts'
import { createRouter } from '../http/app.ts'
import { describeRefusals, describeResponse } from '../http/describe.ts'
import { AmountParameter, Id, MerchantCode, TimeParameter } from '../http/fields.ts'
import {
  cutPage,
  DEFAULT_LIMIT,
  describePage,
  pageParameters,
  readCursor,
  respondPage,
} from '../http/list.ts'
import { type FoundPayment, findPayment, listPayments } from './find-payments.ts'
import { METHODS, Payment, STATUSES, showPayment } from './view.ts'

const shared = { tags: ['Payments'], ...withScope('payments:read') }
const merchantCode = MerchantCode

const readOne = createRoute({
  method: 'get',
  path: '/v1/payments/{paymentId}',
  operationId: 'readPayment',
  summary: 'One payment',
  ...shared,
  request: { params: z.object({ paymentId: Id }), query: z.strictObject({ merchantCode }) },
  responses: {
    200: describeResponse('The payment', Payment),
    ...describeRefusals('payment_not_found', 'ambiguous_merchant'),
  },
})

const list = createRoute({
  method: 'get',
  path: '/v1/payments',
  operationId: 'listPayments',
  summary: 'Payments, newest first',
  ...shared,
  request: {
    query: z.strictObject({
      status: z
        .enum(STATUSES)
        .optional()
        .openapi({ description: 'Only payments with this status' }),
      paymentMethod: z
        .enum(METHODS)
        .optional()
        .openapi({ description: 'Only payments made in this way' }),
      orderId: Id.optional().openapi({ description: 'Only payments of this order' }),
      transactionId: Id.optional().openapi({ description: 'Only payments of this transaction' }),
      amount: AmountParameter,
      from: TimeParameter,
      to: TimeParameter,
      merchantCode,
      ...pageParameters,
    }),
  },
  responses: { 200: describePage(Payment), ...describeRefusals() },
})

/** Creates the merchants' routes on payments. */
export function paymentRoutes(ctx: Context) {
  return createRouter()
    .openapi(readOne, async (c) => {
      const merchants = narrowMerchants(c.get('access'), c.req.valid('query').merchantCode)
      return c.json(show(await findPayment(ctx, merchants, c.req.valid('param').paymentId)), 200)
    })
    .openapi(list, async (c) => {
      const { limit = DEFAULT_LIMIT, cursor, merchantCode, ...filter } = c.req.valid('query')
      const merchants = narrowMerchants(c.get('access'), merchantCode)
      const after = readCursor(cursor)
      const rows = await ctx.reads.run(c.get('access').chainId, (db) =>
        listPayments(db, { ...filter, merchants }, limit, after),
      )
      return respondPage(c, cutPage(rows, limit, locate, show), Payment)
    })
}

function show({ payment, order, refundable, accountHold }: FoundPayment) {
  return showPayment(
    payment,
    { ...order, merchantCode: payment.merchantCode },
    refundable,
    accountHold,
  )
}

function locate({ payment: { firstSeenAt, paymentId, merchantCode } }: FoundPayment) {
  return { time: firstSeenAt, id: paymentId, merchantCode }
}
