import { createRoute, z } from '@hono/zod-openapi'
import { narrowMerchants, withScope } from '../access/authenticate.ts'
import type { Access } from '../access/types.ts'
import type { Context } from '../context.ts'
import type { RefusalCode } from '../errors.ts'
import { createRouter } from '../http/app.ts'
import { BODY_REFUSALS, describeRefusals, describeResponse } from '../http/describe.ts'
import { Id, MerchantCode } from '../http/fields.ts'
import { findReplayed, readIdempotencyKey } from './idempotency.ts'
import { findReceiverHints, maskReceiver } from './receiver.ts'
import { previewRefund, requestRefund } from './request.ts'
import {
  DryRunParameter,
  IdempotencyHeaders,
  RefundRequest,
  type RefundSubject,
  readExactAmount,
  requireKept,
  withDryRun,
} from './request-schema.ts'
import { Refund, RefundPreview, SurplusPreview, showRefund } from './view.ts'

type RequestRoute<P, Params, Preview> = {
  path: P
  operationId: string
  summary: string
  description: string
  params: Params
  preview: Preview
  unknown: RefusalCode
}

function requestRoute<P extends string, Params extends z.ZodObject, Preview extends z.ZodType>({
  params,
  preview,
  unknown,
  ...of
}: RequestRoute<P, Params, Preview>) {
  return createRoute({
    ...{ method: 'post', ...of },
    tags: ['Refunds'],
    ...withDryRun(withScope('refunds:write')),
    request: {
      params,
      query: z.strictObject({ dryRun: DryRunParameter, merchantCode: MerchantCode }),
      headers: IdempotencyHeaders,
      body: { content: { 'application/json': { schema: RefundRequest } }, required: false },
    },
    responses: {
      200: describeResponse('With `dryRun=true`: what would be sent; nothing is stored', preview),
      202: describeResponse(
        'Accepted; `Location` is the URL of the refund. `Idempotent-Replayed: true` if an earlier request created it',
        Refund,
        'Location',
        'Idempotent-Replayed',
      ),
      ...describeRefusals(
        ...BODY_REFUSALS,
        'idempotency_key_missing',
        'refunds_disabled',
        'refund_cap_exceeded',
        unknown,
        'merchant_not_found',
        'ambiguous_merchant',
        'payment_not_refundable',
        'exceeds_refundable',
        'too_many_open_refunds',
        'held',
        'receiver_required',
        'idempotency_key_reused',
      ),
    },
  })
}

const ofPayment = requestRoute({
  path: '/v1/payments/{paymentId}/refunds',
  operationId: 'requestRefund',
  summary: 'Refund a payment, fully or in part',
  description:
    'A payment made by QR needs a `receiver`. The same `Idempotency-Key` with the same body always returns the same refund: repeat a request whose response was lost.',
  params: z.object({ paymentId: Id }),
  preview: RefundPreview,
  unknown: 'payment_not_found',
})

const ofSurplus = requestRoute({
  path: '/v1/transactions/{transactionId}/surplus-refund',
  operationId: 'requestSurplusRefund',
  summary: 'Refund what was paid beyond one success of the order',
  description:
    'Counts all payments of the transaction, and of the other transactions in `sameOrder` if their currency is the same. Without `amount`, refunds all of the surplus that one payment of this transaction holds. Before it is sent, the service checks that one success is left without it. The same `Idempotency-Key` with the same body always returns the same refund.',
  params: z.object({ transactionId: Id }),
  preview: SurplusPreview,
  unknown: 'transaction_not_found',
})

/** A validated request. `text` is the body as it was received. */
type Asked = {
  access: Access
  subject: RefundSubject
  query: { dryRun?: 'true' | 'false' | undefined; merchantCode?: string | undefined }
  headers: z.output<typeof IdempotencyHeaders>
  body: z.output<typeof RefundRequest>
  text: string
}

async function carryOut(ctx: Context, { access, subject, query, headers, body, text }: Asked) {
  const isPreview = query.dryRun === 'true'
  const key = isPreview ? undefined : readIdempotencyKey(headers['idempotency-key'])
  const merchants = narrowMerchants(access, query.merchantCode)
  const { receiver, reason, onBehalfOf, metadata } = body
  const amount = readExactAmount(text)
  requireKept(text)
  const params = { ...subject, amount, receiver, reason, onBehalfOf, metadata }
  if (key === undefined) {
    const preview = await previewRefund(ctx, access, merchants, params)
    const { currency, paymentId, refundable, refundableAfter, surplus = '0' } = preview
    const masked = receiver ? { receiver: maskReceiver(receiver) } : {}
    const wouldSend = { amount: preview.amount, currency, paymentId, ...masked }
    const hints = findReceiverHints(receiver)
    return { preview: { wouldSend, refundableAmount: refundable, refundableAfter }, surplus, hints }
  }
  const requested = await requestRefund(ctx, access, merchants, key, params)
  const { refundId, merchantCode, replayed } = requested
  const { name, requestId } = access
  const facts = { merchantCode, ...subject, refundId, key: name, requestId, replayed }
  ctx.log.info(facts, 'refund requested')
  const shown = replayed ? await findReplayed(ctx, access, requested) : requested.stored
  const location = { location: `/v1/refunds/${refundId}` }
  const sent = replayed ? { ...location, 'idempotent-replayed': 'true' } : location
  return { refund: showRefund(ctx.encryption, shown), headers: sent }
}

export function requestRoutes(ctx: Context) {
  return createRouter()
    .openapi(ofPayment, async (c) => {
      const done = await carryOut(ctx, {
        ...{ access: c.get('access'), subject: c.req.valid('param'), query: c.req.valid('query') },
        ...{ headers: c.req.valid('header'), body: c.req.valid('json'), text: await c.req.text() },
      })
      if (done.refund) return c.json(done.refund, 202, done.headers)
      return c.json({ ...done.preview, hints: done.hints }, 200)
    })
    .openapi(ofSurplus, async (c) => {
      const done = await carryOut(ctx, {
        ...{ access: c.get('access'), subject: c.req.valid('param'), query: c.req.valid('query') },
        ...{ headers: c.req.valid('header'), body: c.req.valid('json'), text: await c.req.text() },
      })
      if (done.refund) return c.json(done.refund, 202, done.headers)
      return c.json({ ...done.preview, surplusAmount: done.surplus, hints: done.hints }, 200)
    })
}
