import { createRoute, z } from '@hono/zod-openapi'
import { narrowMerchants, withScope } from '../access/authenticate.ts'
import type { Context } from '../context.ts'
import { createRouter } from '../http/app.ts'
import { BODY_REFUSALS, describeRefusals, describeResponse } from '../http/describe.ts'
import { Id, MerchantCode } from '../http/fields.ts'
import {
  cutPage,
  DEFAULT_LIMIT,
  describePage,
  pageParameters,
  readCursor,
  respondPage,
} from '../http/list.ts'
import { findPayment } from '../payments/find-payments.ts'
import {
  type ExternalRecord,
  ExternalRefund,
  findExternalRefund,
  listExternalRefunds,
  showExternalRefund,
} from '../refunds/external-view.ts'
import { Reason } from '../refunds/request-schema.ts'
import { resolveExternalRefund } from './external.ts'

const tags = ['Refunds']

const list = createRoute({
  method: 'get',
  path: '/v1/payments/{paymentId}/external-refunds',
  operationId: 'listExternalRefunds',
  summary: "Refunds of a payment that were made at the gateway's portal, newest first",
  tags,
  ...withScope('refunds:read'),
  request: {
    params: z.object({ paymentId: Id }),
    query: z.strictObject({ merchantCode: MerchantCode, ...pageParameters }),
  },
  responses: {
    200: describePage(ExternalRefund),
    ...describeRefusals('payment_not_found', 'ambiguous_merchant'),
  },
})

const ExternalResolution = z
  .strictObject({
    outcome: z.enum(['matched', 'part_of_first_sight', 'never_happened']),
    reason: Reason.min(1, 'must not be empty'),
    againstEvidence: z
      .boolean()
      .optional()
      .openapi({ description: 'Required to contradict what is known, or an earlier decision' }),
  })
  .openapi('ExternalResolution', {
    example: { outcome: 'part_of_first_sight', reason: 'portal, refund of 20 November' },
  })

const resolve = createRoute({
  method: 'post',
  path: '/v1/external-refunds/{externalRefundId}/resolution',
  operationId: 'resolveExternalRefund',
  summary: 'Decide about a refund made elsewhere',
  description:
    '`matched`: it is part of an increase of the refunded amount that no refund explains. `part_of_first_sight`: it is part of what was refunded when the payment was first seen. `never_happened`: nothing more is deducted for it.',
  tags,
  ...withScope('ops'),
  request: {
    params: z.object({
      externalRefundId: z.string().openapi({
        description: 'The `id` of the external refund; an id of another format is not found',
        example: '6f0d1c1e-0c39-4d54-9a5c-2f2f7a5b8f10',
      }),
    }),
    query: z.strictObject({ merchantCode: MerchantCode }),
    body: { content: { 'application/json': { schema: ExternalResolution } }, required: true },
  },
  responses: {
    200: describeResponse('The external refund after the decision', ExternalRefund),
    ...describeRefusals(
      ...BODY_REFUSALS,
      'external_refund_not_found',
      'not_decidable',
      'against_evidence',
      'same_person',
    ),
  },
})

/** Routes to read and decide refunds that were made elsewhere. */
export function externalRefundRoutes(ctx: Context) {
  return createRouter()
    .openapi(list, async (c) => {
      const { limit = DEFAULT_LIMIT, cursor, merchantCode } = c.req.valid('query')
      const merchants = narrowMerchants(c.get('access'), merchantCode)
      const after = readCursor(cursor, z.uuid())
      const { payment } = await findPayment(ctx, merchants, c.req.valid('param').paymentId)
      const rows = await ctx.reads.run(c.get('access').chainId, (db) =>
        listExternalRefunds(db, payment, limit, after),
      )
      return respondPage(c, cutPage({ rows }, limit, locate, showExternalRefund), ExternalRefund)
    })
    .openapi(resolve, async (c) => {
      const access = c.get('access')
      const merchants = narrowMerchants(access, c.req.valid('query').merchantCode)
      const { externalRefundId } = c.req.valid('param')
      const found = await findExternalRefund(ctx, merchants, externalRefundId)
      await resolveExternalRefund(ctx, found, c.req.valid('json'), access)
      const decided = await findExternalRefund(ctx, [found.merchantCode], found.id)
      return c.json(showExternalRefund(decided), 200)
    })
}

function locate({ firstSeenAt, id, merchantCode }: ExternalRecord) {
  return { time: firstSeenAt, id, merchantCode }
}
