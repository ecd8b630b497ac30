import { createRoute, z } from '@hono/zod-openapi'
import { narrowMerchants, withScope } from '../access/authenticate.ts'
import { serveListing } from '../access/listing.ts'
import type { Context } from '../context.ts'
import { createRouter } from '../http/app.ts'
import { describeRefusals, describeResponse } from '../http/describe.ts'
import { Id, MerchantCode } from '../http/fields.ts'
import { describePage, pageParameters } from '../http/list.ts'
import { findPayment } from './find-payments.ts'
import { PAYMENTS, showFound } from './listing.ts'
import { Payment } from './view.ts'

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
      ...PAYMENTS.query,
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
      return c.json(
        showFound(await findPayment(ctx, merchants, c.req.valid('param').paymentId)),
        200,
      )
    })
    .openapi(list, (c) => serveListing(ctx, c, PAYMENTS, c.req.valid('query')))
}
