import { createRoute, z } from '@hono/zod-openapi'
import { narrowMerchants, withScope } from '../access/authenticate.ts'
import { type Listing, serveListing } from '../access/listing.ts'
import type { Context } from '../context.ts'
import { createRouter } from '../http/app.ts'
import { describeRefusals, describeResponse } from '../http/describe.ts'
import { Id, MerchantCode } from '../http/fields.ts'
import { cutPage, describePage, pageParameters } from '../http/list.ts'
import { FILTERS, type FoundPayment, findPayment, listPayments } from './find-payments.ts'
import { Payment, showPayment } from './view.ts'

export const PAYMENTS: Listing<typeof FILTERS, z.infer<typeof Payment>> = {
  name: 'payments',
  scope: 'payments:read',
  query: FILTERS,
  schema: Payment,
  async read(ctx, filter, limit, after) {
    const rows = await listPayments(ctx, filter, limit, after)
    return cutPage(rows, limit, locate, showFound)
  },
}

function showFound({ payment, order, refundable, accountHold }: FoundPayment) {
  const of = { ...order, merchantCode: payment.merchantCode }
  return showPayment({ ...payment, refundable }, of, accountHold)
}

const locate = ({ payment: { firstSeenAt: time, paymentId: id, merchantCode } }: FoundPayment) => {
  return { time, id, merchantCode }
}

const shared = { tags: ['Payments'], ...withScope('payments:read') }

const readOne = createRoute({
  method: 'get',
  path: '/v1/payments/{paymentId}',
  operationId: 'readPayment',
  summary: 'One payment',
  ...shared,
  request: {
    params: z.object({ paymentId: Id }),
    query: z.strictObject({ merchantCode: MerchantCode }),
  },
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
  request: { query: z.strictObject({ ...FILTERS, merchantCode: MerchantCode, ...pageParameters }) },
  responses: { 200: describePage(Payment), ...describeRefusals('cursor_expired') },
})

export function paymentRoutes(ctx: Context) {
  return createRouter()
    .openapi(readOne, async (c) => {
      const merchants = narrowMerchants(c.get('access'), c.req.valid('query').merchantCode)
      const found = await findPayment(ctx, merchants, c.req.valid('param').paymentId)
      return c.json(showFound(found), 200)
    })
    .openapi(list, (c) => serveListing(ctx, c, PAYMENTS, c.req.valid('query')))
}
