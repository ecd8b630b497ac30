import { createRoute, z } from '@hono/zod-openapi'
import { narrowMerchants, withScope } from '../access/authenticate.ts'
import type { Context } from '../context.ts'
import { answers, createRouter, Id, MerchantCode, WaitParameter } from '../http/input.ts'
import { cutPage, DEFAULT_LIMIT, pageOf, pageParameters, readCursor } from '../http/page.ts'
import { BODY_REFUSALS, refuses } from '../http/refusals.ts'
import { findRefund, listRefunds, type RefundRecord } from './find.ts'
import { readIdempotencyKey } from './idempotency.ts'
import { gatherProof } from './proof.ts'
import { maskReceiver } from './receiver.ts'
import { previewRefund, requestRefund } from './request.ts'
import { resolveRefund } from './resolve.ts'
import { Refund, RefundPreview, RefundState, showRefund } from './view.ts'
import { waitForRefund } from './wait.ts'
import { Reason, RefundRequest, readExactAmount } from './wish.ts'

const tags = ['Refunds']
const merchantCode = MerchantCode
const params = z.object({
  refundId: z.string().openapi({
    description: 'The `id` of the refund; a text of another form is not found',
    example: '0d7c9a8e-5d3c-4f0e-9a41-6f1f6f6f2b11',
  }),
})

const request = createRoute({
  method: 'post',
  path: '/v1/payments/{paymentId}/refunds',
  operationId: 'requestRefund',
  summary: 'Refund a payment, in part or all that is left',
  description:
    'The same key with the same body always gives the same refund: a request whose answer was lost is sent again.',
  tags,
  ...withScope('refunds:write'),
  request: {
    params: z.object({ paymentId: Id }),
    query: z.strictObject({
      dryRun: z.enum(['true', 'false']).optional().openapi({
        type: 'boolean',
        description: 'Says what would be sent; stores and sends nothing, and needs no key',
      }),
      merchantCode,
    }),
    headers: z.object({
      'idempotency-key': z.string().optional().openapi({
        description:
          'A text of yours, e.g. `order-DH1-return-1`, new for each refund; needed unless `dryRun=true`',
        maxLength: 257,
      }),
    }),
    body: { content: { 'application/json': { schema: RefundRequest } }, required: false },
  },
  responses: {
    200: answers('With `dryRun=true`: what would be sent; nothing is stored', RefundPreview),
    202: answers(
      'Taken in; `Location` leads to it. `Idempotent-Replayed: true` when it was before',
      Refund,
      'Location',
      'Idempotent-Replayed',
    ),
    ...refuses(
      ...BODY_REFUSALS,
      'idempotency_key_missing',
      'refunds_disabled',
      'refund_cap_exceeded',
      'payment_not_found',
      'merchant_not_found',
      'ambiguous_merchant',
      'payment_not_refundable',
      'exceeds_refundable',
      'receiver_required',
      'idempotency_key_reused',
    ),
  },
})

const readOne = createRoute({
  method: 'get',
  path: '/v1/refunds/{refundId}',
  operationId: 'readRefund',
  summary: 'One refund; `wait` ends when it succeeded, failed or needs a person',
  tags,
  ...withScope('refunds:read'),
  request: {
    params,
    query: z.strictObject({
      wait: WaitParameter,
      include: z
        .enum(['proof'])
        .optional()
        .openapi({ description: 'What else to show: everything that supports the status' }),
      merchantCode,
    }),
  },
  responses: { 200: answers('The refund', Refund), ...refuses('refund_not_found') },
})

const list = createRoute({
  method: 'get',
  path: '/v1/refunds',
  operationId: 'listRefunds',
  summary: 'Refunds, newest first',
  tags,
  ...withScope('refunds:read'),
  request: {
    query: z.strictObject({
      paymentId: Id.optional(),
      status: RefundState.optional().openapi({ description: 'Only those in it' }),
      merchantCode,
      ...pageParameters,
    }),
  },
  responses: { 200: answers('A page', pageOf(Refund)), ...refuses() },
})

const Resolution = z
  .strictObject({
    outcome: z.enum(['succeeded', 'failed']),
    reason: Reason.min(1, 'must not be empty'),
  })
  .openapi('Resolution', {
    example: { outcome: 'succeeded', reason: 'gateway support, ticket 4711: paid out' },
  })

const resolve = createRoute({
  method: 'post',
  path: '/v1/refunds/{refundId}/resolution',
  operationId: 'resolveRefund',
  summary: 'A person decides a refund in `needs_review`',
  tags,
  ...withScope('ops'),
  request: {
    params,
    query: z.strictObject({ merchantCode }),
    body: {
      content: {
        'application/json': {
          schema: Resolution,
        },
      },
      required: true,
    },
  },
  responses: {
    200: answers('The refund as it is now', Refund),
    ...refuses(...BODY_REFUSALS, 'refund_not_found', 'refund_not_in_review'),
  },
})

/** The merchants' routes on refunds. */
export function refundRoutes(ctx: Context) {
  const show = (found: RefundRecord) => showRefund(ctx.sealer, found)
  return createRouter()
    .openapi(request, async (c) => {
      const { dryRun, merchantCode: named } = c.req.valid('query')
      const preview = dryRun === 'true'
      const key = preview ? undefined : readIdempotencyKey(c.req.valid('header')['idempotency-key'])
      const access = c.get('access')
      const merchants = narrowMerchants(access, named)
      const { receiver, reason } = c.req.valid('json')
      const amount = readExactAmount(await c.req.text())
      const { paymentId } = c.req.valid('param')
      const wish = { paymentId, amount, receiver, reason }
      if (key === undefined) {
        const would = await previewRefund(ctx, access, merchants, wish)
        const masked = receiver ? { receiver: maskReceiver(receiver) } : {}
        const wouldSend = { amount: would.amount, currency: would.currency, paymentId, ...masked }
        const { refundable: refundableAmount, refundableAfter } = would
        return c.json({ wouldSend, refundableAmount, refundableAfter }, 200)
      }
      const requested = await requestRefund(ctx, access, merchants, key, wish)
      const { refundId, merchantCode, replayed } = requested
      const { name, requestId } = access
      ctx.log.info({ merchantCode, refundId, key: name, requestId, replayed }, 'refund requested')
      const refund = replayed
        ? show(await findRefund(ctx, [merchantCode], refundId))
        : showRefund(ctx.sealer, requested.stored)
      const headers = { location: `/v1/refunds/${refundId}` }
      return c.json(refund, 202, replayed ? { ...headers, 'idempotent-replayed': 'true' } : headers)
    })
    .openapi(readOne, async (c) => {
      const { wait, include, merchantCode } = c.req.valid('query')
      const merchants = narrowMerchants(c.get('access'), merchantCode)
      const first = await findRefund(ctx, merchants, c.req.valid('param').refundId)
      const found =
        wait === undefined ? first : await waitForRefund(ctx, first, wait * 1000, c.req.raw.signal)
      const proof = include === 'proof' ? { proof: await gatherProof(ctx, found) } : {}
      return c.json({ ...show(found), ...proof }, 200)
    })
    .openapi(list, async (c) => {
      const { limit = DEFAULT_LIMIT, cursor, merchantCode, ...filter } = c.req.valid('query')
      const merchants = narrowMerchants(c.get('access'), merchantCode)
      const after = readCursor(cursor, z.uuid())
      const rows = await listRefunds(ctx, { ...filter, merchants }, limit, after)
      return c.json(cutPage(rows, limit, locate, show), 200)
    })
    .openapi(resolve, async (c) => {
      const access = c.get('access')
      const merchants = narrowMerchants(access, c.req.valid('query').merchantCode)
      const found = await findRefund(ctx, merchants, c.req.valid('param').refundId)
      await resolveRefund(ctx, found, c.req.valid('json'), access)
      return c.json(show(await findRefund(ctx, merchants, found.refund.refundId)), 200)
    })
}

function locate({ refund: { requestedAt, refundId, merchantCode } }: RefundRecord) {
  return { time: requestedAt, id: refundId, merchantCode }
}
