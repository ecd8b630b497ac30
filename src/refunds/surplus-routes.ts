import { createRoute, z } from '@hono/zod-openapi'
import { narrowMerchants, withScope } from '../access/authenticate.ts'
import type { Context } from '../context.ts'
import { createRouter } from '../http/app.ts'
import { BODY_REFUSALS, describeRefusals, describeResponse } from '../http/describe.ts'
import { Id, MerchantCode } from '../http/fields.ts'
import { findReceiverHints, maskReceiver } from './receiver.ts'
import {
  DryRunParameter,
  IdempotencyHeaders,
  RefundRequest,
  readExactAmount,
  readIdempotencyKey,
  withDryRun,
} from './request-schema.ts'
import { previewSurplusRefund, requestSurplusRefund, type SurplusParams } from './surplus.ts'
import { findReplayed } from './target.ts'
import { Refund, SurplusPreview, showRefund } from './view.ts'

const request = createRoute({
  method: 'post',
  path: '/v1/transactions/{transactionId}/surplus-refund',
  operationId: 'requestSurplusRefund',
  summary: 'Refund what was paid beyond one success of the order',
  description:
    'Counts all payments of the transaction, and of the other transactions in `sameOrder` if their currency is the same. Without `amount`, refunds all of the surplus that one payment of this transaction holds. Before it is sent, the service checks that one success is left without it. The same `Idempotency-Key` with the same body always returns the same refund.',
  tags: ['Refunds'],
  ...withDryRun(withScope('refunds:write')),
  request: {
    params: z.object({ transactionId: Id }),
    query: z.strictObject({ dryRun: DryRunParameter, merchantCode: MerchantCode }),
    headers: IdempotencyHeaders,
    body: { content: { 'application/json': { schema: RefundRequest } }, required: false },
  },
  responses: {
    200: describeResponse(
      'With `dryRun=true`: what would be sent; nothing is stored',
      SurplusPreview,
    ),
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
      'transaction_not_found',
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

/** The route that refunds what was paid for an order beyond one success. */
export function surplusRoutes(ctx: Context) {
  return createRouter().openapi(request, async (c) => {
    const { dryRun, merchantCode: named } = c.req.valid('query')
    const isPreview = dryRun === 'true'
    const key = isPreview ? undefined : readIdempotencyKey(c.req.valid('header')['idempotency-key'])
    const access = c.get('access')
    const merchants = narrowMerchants(access, named)
    const { receiver, reason, onBehalfOf, metadata } = c.req.valid('json')
    const amount = readExactAmount(await c.req.text())
    const { transactionId } = c.req.valid('param')
    const params: SurplusParams = { transactionId, amount, receiver, reason, onBehalfOf, metadata }
    if (key === undefined) {
      const preview = await previewSurplusRefund(ctx, access, merchants, params)
      return c.json(showPreview(preview, params), 200)
    }
    const requested = await requestSurplusRefund(ctx, access, merchants, key, params)
    const { refundId, merchantCode, replayed } = requested
    const { name, requestId } = access
    const facts = { merchantCode, transactionId, refundId, key: name, requestId, replayed }
    ctx.log.info(facts, 'surplus refund requested')
    const shown = replayed ? await findReplayed(ctx, access, requested) : requested.stored
    const headers = { location: `/v1/refunds/${refundId}` }
    return c.json(
      showRefund(ctx.encryption, shown),
      202,
      replayed ? { ...headers, 'idempotent-replayed': 'true' } : headers,
    )
  })
}

function showPreview(
  preview: Awaited<ReturnType<typeof previewSurplusRefund>>,
  { receiver }: SurplusParams,
): z.infer<typeof SurplusPreview> {
  const { amount, currency, paymentId, surplus, refundable, refundableAfter } = preview
  const masked = receiver ? { receiver: maskReceiver(receiver) } : {}
  return {
    wouldSend: { amount, currency, paymentId, ...masked },
    refundableAmount: refundable,
    refundableAfter,
    surplusAmount: surplus,
    hints: findReceiverHints(receiver),
  }
}
