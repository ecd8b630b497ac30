import { createRoute, z } from '@hono/zod-openapi'
import { withScope } from '../access/authenticate.ts'
import type { Scope } from '../access/keys.ts'
import { Discrepancy } from '../discrepancies/routes.ts'
import type { RefusalCode } from '../errors.ts'
import { BODY_REFUSALS, describeRefusals, describeResponse } from '../http/describe.ts'
import { MerchantCode } from '../http/fields.ts'
import { Hold } from '../payments/view.ts'
import { ExternalRefund } from '../refunds/external-view.ts'
import { Reason, RefundId } from '../refunds/request-schema.ts'
import { Refund } from '../refunds/view.ts'
import { EXTERNAL_OUTCOMES } from './external.ts'
import { DECISIONS, type Decision, OUTCOMES } from './obstacles.ts'
import { HOLD_TARGETS } from './second-person.ts'

const Text = Reason.min(1, 'must not be empty')
const AgainstEvidence = z.boolean().optional()

const ApprovalDecision = z
  .strictObject({ reason: Text.optional() })
  .openapi('ApprovalDecision', { example: { reason: 'checked against the return' } })
const becauseOf = (name: string, reason: string) =>
  z.strictObject({ reason: Text }).openapi(name, { example: { reason } })
const Cancellation = becauseOf('Cancellation', 'the customer keeps the goods')
const ResolutionRequest = z
  .strictObject({
    outcome: z.enum(OUTCOMES),
    reason: Text,
    againstEvidence: AgainstEvidence.openapi({
      description:
        'Required to contradict a notification, the refunded amount or an earlier decision',
    }),
  })
  .openapi('ResolutionRequest', {
    example: { outcome: 'succeeded', reason: 'gateway support, ticket 4711: paid out' },
  })
const ExternalResolution = z
  .strictObject({
    outcome: z.enum(EXTERNAL_OUTCOMES),
    reason: Text,
    againstEvidence: AgainstEvidence.openapi({
      description: 'Required to contradict what is known, or an earlier decision',
    }),
  })
  .openapi('ExternalResolution', {
    example: { outcome: 'part_of_first_sight', reason: 'portal, refund of 20 November' },
  })
const DiscrepancyResolution = becauseOf(
  'DiscrepancyResolution',
  'refunded at the portal by the support team, ticket 4711',
)
const DiscrepancyNote = z
  .strictObject({ text: Text })
  .openapi('DiscrepancyNote', { example: { text: 'asked the gateway, ticket 4711' } })
const DiscrepancyAssignee = z
  .strictObject({ name: Text.max(100, 'must be at most 100 characters').nullable() })
  .openapi('DiscrepancyAssignee', { example: { name: 'Linh' } })
const HoldReason = becauseOf('HoldReason', 'the account was broken into')

const HoldState = z
  .strictObject({
    target: z.enum(HOLD_TARGETS),
    id: z.string(),
    merchantCode: z.string(),
    hold: Hold.nullable(),
  })
  .openapi('HoldState')

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
  /** The body may be left out. */
  isOptional?: true
  /** The description of the response, and its schema. */
  shown: [string, Shown]
  refusals: readonly RefusalCode[]
}

/** Whoever decides gives a reason, and gets the object as it is after the decision. */
function decisionRoute<
  M extends 'post' | 'put' | 'delete',
  P extends string,
  Params extends z.ZodObject,
  Body extends z.ZodType,
  Shown extends z.ZodType,
>(route: DecisionRoute<M, P, Params, Body, Shown>) {
  const { tag = 'Refunds', scope = 'ops', params, body, isOptional, shown, refusals, ...of } = route
  return createRoute({
    ...{ ...of, tags: [tag] },
    ...withScope(scope),
    request: {
      params,
      query: z.strictObject({ merchantCode: MerchantCode }),
      body: { content: { 'application/json': { schema: body } }, required: !isOptional },
    },
    responses: {
      200: describeResponse(...shown),
      ...describeRefusals(...BODY_REFUSALS, ...refusals),
    },
  })
}

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

export const cancel = refundRoute('cancel', {
  operationId: 'cancelRefund',
  summary: 'Cancel a refund that was never sent',
  description: GROWN,
  body: Cancellation,
  shown: 'The refund, `failed` with `failure.source` `merchant`',
  refusals: ['already_sent', 'not_cancellable', 'growth_may_be_its_own', 'same_person'],
})

export const resolve = refundRoute('succeeded', {
  operationId: 'resolveRefund',
  summary: 'Decide the outcome of a refund',
  description:
    '`succeeded` or `failed`: in `needs_review`, in `accepted` after `REFUND_RESOLVE_FOR_MS`, in `unknown` after `REFUND_CONFIRM_FAILED_MS`. `succeeded` also of one whose success is `inferred`, and of one that failed after it was sent. `returned`: in `succeeded`; said once more by another principal, it releases the amount at once. Whatever was decided, by a person or by evidence, another principal can decide otherwise; where none may decide for the merchant, the same one can after `REFUND_CONFIRM_FAILED_MS` (`selfDecided`).',
  body: ResolutionRequest,
  shown: 'The refund after the decision',
  refusals: ['not_decidable', 'against_evidence', 'same_person'],
})

export const approve = refundRoute('approve', {
  operationId: 'approveRefund',
  summary: 'Approve a refund that someone else requested',
  body: ApprovalDecision,
  isOptional: true,
  shown: 'The approved refund, `pending`',
  refusals: ['same_person', 'not_awaiting_approval'],
})

export const decline = refundRoute('decline', {
  operationId: 'declineRefund',
  summary: 'Decline a refund that someone else requested',
  description: GROWN,
  body: ApprovalDecision,
  isOptional: true,
  shown: 'The declined refund, `failed`',
  refusals: ['same_person', 'not_awaiting_approval', 'growth_may_be_its_own'],
})

export const resolveExternal = decisionRoute({
  method: 'post',
  path: '/v1/external-refunds/{externalRefundId}/resolution',
  operationId: 'resolveExternalRefund',
  summary: 'Decide about a refund made elsewhere',
  description:
    '`matched`: it is part of an increase of the refunded amount that no refund explains. `part_of_first_sight`: it is part of what was refunded when the payment was first seen. `never_happened`: nothing more is deducted for it.',
  params: z.object({
    externalRefundId: z.string().openapi({
      description: 'The `id` of the external refund; an id of another format is not found',
      example: '6f0d1c1e-0c39-4d54-9a5c-2f2f7a5b8f10',
    }),
  }),
  body: ExternalResolution,
  shown: ['The external refund after the decision', ExternalRefund],
  refusals: ['external_refund_not_found', 'not_decidable', 'against_evidence', 'same_person'],
})

export const HELD = {
  path: '/v1/holds/{target}/{id}',
  params: z.object({
    target: z.enum(HOLD_TARGETS).openapi({ description: 'What is held' }),
    id: z.string().openapi({
      description: 'The merchant code, or the id of the payment or the refund',
      example: '1439211',
    }),
  }),
  body: HoldReason,
} as const
const UNKNOWN = ['merchant_not_found', 'payment_not_found', 'refund_not_found'] as const

export const setHold = decisionRoute({
  ...HELD,
  method: 'put',
  operationId: 'setHold',
  summary: 'Hold the refunds of an account or a payment, or one refund: nothing held is sent',
  shown: ['The hold; from now on no attempt to send is recorded', HoldState],
  refusals: [...UNKNOWN, 'ambiguous_merchant'],
})

export const releaseHold = decisionRoute({
  ...HELD,
  method: 'delete',
  operationId: 'releaseHold',
  summary: 'Release a hold',
  shown: ['`hold` is null', HoldState],
  refusals: [...UNKNOWN, 'ambiguous_merchant', 'not_held', 'same_person'],
})

function discrepancyRoute<P extends string, Body extends z.ZodType>(
  of: { path: P; operationId: string; summary: string; body: Body },
  ...refusals: RefusalCode[]
) {
  return decisionRoute({
    ...{ ...of, method: 'post', tag: 'Discrepancies' },
    params: z.object({
      id: z.string().openapi({ description: 'The `id` of the discrepancy', example: '17' }),
    }),
    shown: ['The discrepancy as it is now', Discrepancy],
    refusals: ['discrepancy_not_found', 'discrepancy_resolved', ...refusals],
  })
}

export const resolveOne = discrepancyRoute(
  {
    path: '/v1/discrepancies/{id}/resolution',
    operationId: 'resolveDiscrepancy',
    summary: 'Resolve a discrepancy; it stays resolved while both sides are the same',
    body: DiscrepancyResolution,
  },
  'same_person',
)
export const note = discrepancyRoute({
  path: '/v1/discrepancies/{id}/note',
  operationId: 'noteDiscrepancy',
  summary: 'Add a note to a discrepancy',
  body: DiscrepancyNote,
})
export const assign = discrepancyRoute({
  path: '/v1/discrepancies/{id}/assignee',
  operationId: 'assignDiscrepancy',
  summary: 'Assign an open discrepancy to a person, or to nobody (`null`)',
  body: DiscrepancyAssignee,
})
