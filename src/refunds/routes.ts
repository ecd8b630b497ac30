import { createRoute, z } from '@hono/zod-openapi'
import { narrowMerchants, requireScope } from '../access/authenticate.ts'
import type { Context } from '../context.ts'
import { answers, bodyRefusals, createRouter, Id, refusals, WaitParameter } from '../http/input.ts'
import { cutPage, DEFAULT_LIMIT, pageOf, pageParameters, readCursor } from '../http/page.ts'
import { findRefund, listRefunds, type RefundRecord } from './find.ts'
import { readIdempotencyKey } from './idempotency.ts'
import { gatherProof } from './proof.ts'
import { maskReceiver } from './receiver.ts'
import { previewRefund, requestRefund } from './request.ts'
import { resolveRefund } from './resolve.ts'
import { Refund, RefundPreview, RefundState, showRefund } from './view.ts'
import { waitForRefund } from './wait.ts'
import { Reason, RefundRequest, readExactAmount } from './wish.ts'

const merchantCode = z.string().optional()

const request = createRoute({
  method: 'post',
  path: '/v1/payments/{paymentId}/refunds',
  summary: 'Refund a payment, in part or all that is left',
  middleware: requireScope('refunds:write'),
  request: {
    params: z.object({ paymentId: Id }),
    query: z.strictObject({ dryRun: z.enum(['true', 'false']).optional(), merchantCode }),
    headers: z.object({ 'idempotency-key': z.string().optional() }),
    body: { content: { 'application/json': { schema: RefundRequest } }, required: false },
  },
  responses: {
    200: answers('With `dryRun=true`: what would be sent; nothing is stored', RefundPreview),
    202: answers(
      'Taken in; `Location` leads to it. `Idempotent-Replayed: true` when it was before',
      Refund,
    ),
    ...refusals,
    ...bodyRefusals,
  },
})

const readOne = createRoute({
  method: 'get',
  path: '/v1/refunds/{refundId}',
  summary: 'One refund; `wait` ends when it succeeded, failed or needs a person',
  middleware: requireScope('refunds:read'),
  request: {
    params: z.object({ refundId: z.uuid() }),
    query: z.strictObject({
      wait: WaitParameter,
      include: z.enum(['proof']).optional(),
      merchantCode,
    }),
  },
  responses: { 200: answers('The refund', Refund), ...refusals },
})

const list = createRoute({
  method: 'get',
  path: '/v1/refunds',
  summary: 'Refunds, newest first',
  middleware: requireScope('refunds:read'),
  request: {
    query: z.strictObject({
      paymentId: Id.optional(),
      status: RefundState.optional(),
      merchantCode,
      ...pageParameters,
    }),
  },
  responses: { 200: answers('A page', pageOf(Refund)), ...refusals },
})

const resolve = createRoute({
  method: 'post',
  path: '/v1/refunds/{refundId}/resolution',
  summary: 'A person decides a refund in `needs_review`',
  middleware: requireScope('ops'),
  request: {
    params: z.object({ refundId: z.uuid() }),
    query: z.strictObject({ merchantCode }),
    body: {
      content: {
        'application/json': {
          schema: z.strictObject({
            outcome: z.enum(['succeeded', 'failed']),
            reason: Reason.min(1, 'must not be empty'),
          }),
        },
      },
      required: true,
    },
  },
  responses: { 200: answers('The refund as it is now', Refund), ...refusals, ...bodyRefusals },
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
