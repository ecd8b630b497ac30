import { createRoute, z } from '@hono/zod-openapi'
import { narrowMerchants, withScope } from '../access/authenticate.ts'
import type { Access } from '../access/types.ts'
import { createRouter } from '../http/app.ts'
import { BODY_REFUSALS, describeRefusals, describeResponse } from '../http/describe.ts'
import { MerchantCode, MerchantCode as merchantCode } from '../http/fields.ts'
import { type FoundRefund, findRefund } from '../refunds/find.ts'
import { Reason, RefundId } from '../refunds/request-schema.ts'
import { Refund, showRefund } from '../refunds/view.ts'
import type { TransactionsContext } from '../transactions/types.ts'
import { DECISIONS, OUTCOMES } from './obstacles.ts'
import { decideRefund, type RefundDecision } from './refunds.ts'

const ApprovalDecision = z
  .strictObject({ reason: Reason.min(1, 'must not be empty').optional() })
  .openapi('ApprovalDecision', { example: { reason: 'checked against the return' } })

const shared = {
  method: 'post' as const,
  tags: ['Refunds'],
  ...withScope(DECISIONS.approve.scope),
  request: {
    params: z.object({ refundId: RefundId }),
    query: z.strictObject({ merchantCode: MerchantCode }),
    body: { content: { 'application/json': { schema: ApprovalDecision } }, required: false },
  },
}

const refusals = [
  ...BODY_REFUSALS,
  'refund_not_found',
  'same_person',
  'not_awaiting_approval',
] as const

const approval = createRoute({
  ...shared,
  path: '/v1/refunds/{refundId}/approval',
  operationId: 'approveRefund',
  summary: 'Approve a refund that someone else requested',
  responses: {
    200: describeResponse('The approved refund, `pending`', Refund),
    ...describeRefusals(...refusals),
  },
})

const decline = createRoute({
  ...shared,
  path: '/v1/refunds/{refundId}/decline',
  operationId: 'declineRefund',
  summary: 'Decline a refund that someone else requested',
  description:
    'Refused with `growth_may_be_its_own` while the payment has grown by its amount or more and no known refund explains that: the money may have moved already. The problem says what to explain first.',
  responses: {
    200: describeResponse('The declined refund, `failed`', Refund),
    ...describeRefusals(...refusals, 'growth_may_be_its_own'),
  },
})

/** Routes by which a second person approves or declines a refund. */
export function approvalRoutes(ctx: TransactionsContext) {
  const decide = async (
    access: Access,
    { refundId, merchantCode }: { refundId: string; merchantCode: string | undefined },
    decision: RefundDecision,
  ) => {
    const merchants = narrowMerchants(access, merchantCode)
    const found = await findRefund(ctx, merchants, refundId)
    await decideRefund(ctx, found, decision, access)
    const { refund } = found
    return showRefund(ctx.encryption, await findRefund(ctx, [refund.merchantCode], refundId))
  }
  return createRouter()
    .openapi(approval, async (c) => {
      const of = { ...c.req.valid('param'), merchantCode: c.req.valid('query').merchantCode }
      const { reason } = c.req.valid('json')
      return c.json(await decide(c.get('access'), of, { decision: 'approve', reason }), 200)
    })
    .openapi(decline, async (c) => {
      const of = { ...c.req.valid('param'), merchantCode: c.req.valid('query').merchantCode }
      const { reason } = c.req.valid('json')
      return c.json(await decide(c.get('access'), of, { decision: 'decline', reason }), 200)
    })
}

const tags = ['Refunds']
const params = z.object({ refundId: RefundId })

const ResolutionRequest = z
  .strictObject({
    outcome: z.enum(OUTCOMES),
    reason: Reason.min(1, 'must not be empty'),
    againstEvidence: z.boolean().optional().openapi({
      description:
        'Required to contradict a notification, the refunded amount or an earlier decision',
    }),
  })
  .openapi('ResolutionRequest', {
    example: { outcome: 'succeeded', reason: 'gateway support, ticket 4711: paid out' },
  })

const Cancellation = z
  .strictObject({ reason: Reason.min(1, 'must not be empty') })
  .openapi('Cancellation', { example: { reason: 'the customer keeps the goods' } })

const resolve = createRoute({
  method: 'post',
  path: '/v1/refunds/{refundId}/resolution',
  operationId: 'resolveRefund',
  summary: 'Decide the outcome of a refund',
  description:
    '`succeeded` or `failed`: in `needs_review`, in `accepted` after `REFUND_RESOLVE_FOR_MS`, in `unknown` after `REFUND_CONFIRM_FAILED_MS`. `succeeded` also of one whose success is `inferred`, and of one that failed after it was sent. `returned`: in `succeeded`; said once more by another principal, it releases the amount at once. Whatever was decided, by a person or by evidence, another principal can decide otherwise; where none may decide for the merchant, the same one can after `REFUND_CONFIRM_FAILED_MS` (`selfDecided`).',
  tags,
  ...withScope(DECISIONS.succeeded.scope),
  request: {
    params,
    query: z.strictObject({ merchantCode }),
    body: {
      content: {
        'application/json': {
          schema: ResolutionRequest,
        },
      },
      required: true,
    },
  },
  responses: {
    200: describeResponse('The refund after the decision', Refund),
    ...describeRefusals(
      ...BODY_REFUSALS,
      'refund_not_found',
      'not_decidable',
      'against_evidence',
      'same_person',
    ),
  },
})

const cancel = createRoute({
  method: 'post',
  path: '/v1/refunds/{refundId}/cancellation',
  operationId: 'cancelRefund',
  summary: 'Cancel a refund that was never sent',
  description:
    'Refused with `growth_may_be_its_own` while the payment has grown by its amount or more and no known refund explains that: the money may have moved already. The problem says what to explain first.',
  tags,
  ...withScope(DECISIONS.cancel.scope),
  request: {
    params,
    query: z.strictObject({ merchantCode }),
    body: { content: { 'application/json': { schema: Cancellation } }, required: true },
  },
  responses: {
    200: describeResponse('The refund, `failed` with `failure.source` `merchant`', Refund),
    ...describeRefusals(
      ...BODY_REFUSALS,
      'refund_not_found',
      'already_sent',
      'not_cancellable',
      'growth_may_be_its_own',
    ),
  },
})

/** Routes to cancel a refund, and to decide its outcome. */
export function decisionRoutes(ctx: TransactionsContext) {
  const show = (found: FoundRefund) => showRefund(ctx.encryption, found)
  return createRouter()
    .openapi(cancel, async (c) => {
      const access = c.get('access')
      const merchants = narrowMerchants(access, c.req.valid('query').merchantCode)
      const found = await findRefund(ctx, merchants, c.req.valid('param').refundId)
      await decideRefund(ctx, found, { decision: 'cancel', ...c.req.valid('json') }, access)
      return c.json(show(await findRefund(ctx, merchants, found.refund.refundId)), 200)
    })
    .openapi(resolve, async (c) => {
      const access = c.get('access')
      const merchants = narrowMerchants(access, c.req.valid('query').merchantCode)
      const found = await findRefund(ctx, merchants, c.req.valid('param').refundId)
      const { outcome, ...rest } = c.req.valid('json')
      await decideRefund(ctx, found, { decision: outcome, ...rest }, access)
      return c.json(show(await findRefund(ctx, merchants, found.refund.refundId)), 200)
    })
}
