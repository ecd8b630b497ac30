import { createRoute, z } from '@hono/zod-openapi'
import { narrowMerchants, withScope } from '../access/authenticate.ts'
import type { Scope } from '../access/keys.ts'
import type { Access } from '../access/types.ts'
import type { RefusalCode } from '../errors.ts'
import { createRouter } from '../http/app.ts'
import { BODY_REFUSALS, describeRefusals, describeResponse } from '../http/describe.ts'
import { MerchantCode } from '../http/fields.ts'
import { findRefund } from '../refunds/find.ts'
import { Reason, RefundId } from '../refunds/request-schema.ts'
import { Refund, showRefund } from '../refunds/view.ts'
import type { TransactionsContext } from '../transactions/types.ts'
import { DECISIONS, type Decision, OUTCOMES } from './obstacles.ts'
import { decideRefund, type RefundDecision } from './refunds.ts'

export const RequiredText = Reason.min(1, 'must not be empty')
export const AgainstEvidence = z.boolean().optional()
export const becauseOf = (name: string, reason: string) =>
  z.strictObject({ reason: RequiredText }).openapi(name, { example: { reason } })

type DecisionRoute<M, P, Params, Body, Shown> = {
  method: M
  path: P
  operationId: string
  summary: string
  description?: string
  tag?: 'Discrepancies'
  scope?: Scope
  params: Params
  body: Body
  isBodyOptional?: true
  /** The description of the response, and its schema. */
  shown: [string, Shown]
  refusals: readonly RefusalCode[]
}

/** Whoever decides gives a reason, and gets the object as it is after the decision. */
export function decisionRoute<
  M extends 'post' | 'put' | 'delete',
  P extends string,
  Params extends z.ZodObject,
  Body extends z.ZodType,
  Shown extends z.ZodType,
>(route: DecisionRoute<M, P, Params, Body, Shown>) {
  const {
    tag = 'Refunds',
    scope = 'ops',
    params,
    body,
    isBodyOptional,
    shown,
    refusals,
    ...of
  } = route
  return createRoute({
    ...{ ...of, tags: [tag] },
    ...withScope(scope),
    request: {
      params,
      query: z.strictObject({ merchantCode: MerchantCode }),
      body: { content: { 'application/json': { schema: body } }, required: !isBodyOptional },
    },
    responses: {
      200: describeResponse(...shown),
      ...describeRefusals(...BODY_REFUSALS, ...refusals),
    },
  })
}

const ApprovalDecision = z
  .strictObject({ reason: RequiredText.optional() })
  .openapi('ApprovalDecision', { example: { reason: 'checked against the return' } })
const Cancellation = becauseOf('Cancellation', 'the customer keeps the goods')
const ResolutionRequest = z
  .strictObject({
    outcome: z.enum(OUTCOMES),
    reason: RequiredText,
    againstEvidence: AgainstEvidence.openapi({
      description:
        'Required to contradict a notification, the refunded amount or an earlier decision',
    }),
  })
  .openapi('ResolutionRequest', {
    example: { outcome: 'succeeded', reason: 'gateway support, ticket 4711: paid out' },
  })

type RefundRoute<Body> = Omit<
  DecisionRoute<'post', string, never, Body, never>,
  'method' | 'path' | 'scope' | 'params' | 'shown'
> & { shown: string }

function refundRoute<D extends Decision, Body extends z.ZodType>(
  decision: D,
  { shown, refusals, ...of }: RefundRoute<Body>,
) {
  const { path, scope } = DECISIONS[decision]
  return decisionRoute({
    ...{ ...of, method: 'post', scope, params: z.object({ refundId: RefundId }) },
    path: `/v1/refunds/{refundId}/${path}` as const,
    shown: [shown, Refund],
    refusals: ['refund_not_found', ...refusals],
  })
}

const GROWN =
  'Refused with `growth_may_be_its_own` while the payment has grown by its amount or more and no known refund explains that: the money may have moved already. The problem says what to explain first.'

const cancel = refundRoute('cancel', {
  operationId: 'cancelRefund',
  summary: 'Cancel a refund that was never sent',
  description: GROWN,
  body: Cancellation,
  shown: 'The refund, `failed` with `failure.source` `merchant`',
  refusals: ['already_sent', 'not_cancellable', 'growth_may_be_its_own', 'same_person'],
})

const resolve = refundRoute('succeeded', {
  operationId: 'resolveRefund',
  summary: 'Decide the outcome of a refund',
  description:
    '`succeeded` or `failed`: in `needs_review`, in `accepted` after `REFUND_RESOLVE_FOR_MS`, in `unknown` after `REFUND_CONFIRM_FAILED_MS`. `succeeded` also of one whose success is `inferred`, and of one that failed after it was sent. `returned`: in `succeeded`; said once more by another principal, it releases the amount at once. Whatever was decided, by a person or by evidence, another principal can decide otherwise; where none may decide for the merchant, the same one can after `REFUND_CONFIRM_FAILED_MS` (`selfDecided`).',
  body: ResolutionRequest,
  shown: 'The refund after the decision',
  refusals: ['not_decidable', 'against_evidence', 'same_person'],
})

const approve = refundRoute('approve', {
  operationId: 'approveRefund',
  summary: 'Approve a refund that someone else requested',
  body: ApprovalDecision,
  isBodyOptional: true,
  shown: 'The approved refund, `pending`',
  refusals: ['same_person', 'not_awaiting_approval'],
})

const decline = refundRoute('decline', {
  operationId: 'declineRefund',
  summary: 'Decline a refund that someone else requested',
  description: GROWN,
  body: ApprovalDecision,
  isBodyOptional: true,
  shown: 'The declined refund, `failed`',
  refusals: ['same_person', 'not_awaiting_approval', 'growth_may_be_its_own'],
})

export function refundDecisionRoutes(ctx: TransactionsContext) {
  return createRouter()
    .openapi(cancel, async (c) => {
      const decision = { decision: 'cancel' as const, ...c.req.valid('json') }
      const of = { ...c.req.valid('param'), ...c.req.valid('query') }
      return c.json(await decideAndShow(ctx, c.get('access'), of, decision), 200)
    })
    .openapi(resolve, async (c) => {
      const { outcome, ...rest } = c.req.valid('json')
      const of = { ...c.req.valid('param'), ...c.req.valid('query') }
      const decision = { decision: outcome, ...rest }
      return c.json(await decideAndShow(ctx, c.get('access'), of, decision), 200)
    })
    .openapi(approve, async (c) => {
      const of = { ...c.req.valid('param'), ...c.req.valid('query') }
      const decision = { decision: 'approve' as const, ...c.req.valid('json') }
      return c.json(await decideAndShow(ctx, c.get('access'), of, decision), 200)
    })
    .openapi(decline, async (c) => {
      const of = { ...c.req.valid('param'), ...c.req.valid('query') }
      const decision = { decision: 'decline' as const, ...c.req.valid('json') }
      return c.json(await decideAndShow(ctx, c.get('access'), of, decision), 200)
    })
}

async function decideAndShow(
  ctx: TransactionsContext,
  access: Access,
  { refundId, merchantCode }: { refundId: string; merchantCode?: string | undefined },
  decision: RefundDecision,
) {
  const found = await findRefund(ctx, narrowMerchants(access, merchantCode), refundId)
  await decideRefund(ctx, found, decision, access)
  const decided = await findRefund(ctx, [found.refund.merchantCode], found.refund.refundId)
  return showRefund(ctx.encryption, decided)
}
