import { createRoute, z } from '@hono/zod-openapi'
import { narrowMerchants, withScope } from '../../access/authenticate.ts'
import { createRouter } from '../../http/app.ts'
import { BODY_REFUSALS, describeRefusals, describeResponse } from '../../http/describe.ts'
import { MerchantCode } from '../../http/fields.ts'
import type { TransactionsContext } from '../../transactions/context.ts'
import { findRefund } from '../find-refunds.ts'
import { Reason, RefundId } from '../request/params.ts'
import { Refund, showRefund } from '../view.ts'
import { decideApproval } from './decide-approval.ts'

const ApprovalDecision = z
  .strictObject({ reason: Reason.min(1, 'must not be empty').optional() })
  .openapi('ApprovalDecision', { example: { reason: 'checked against the return' } })

const shared = {
  method: 'post' as const,
  tags: ['Refunds'],
  ...withScope('refunds:approve'),
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
    access: Parameters<typeof decideApproval>[3],
    { refundId, merchantCode }: { refundId: string; merchantCode: string | undefined },
    decision: Parameters<typeof decideApproval>[2],
  ) => {
    const merchants = narrowMerchants(access, merchantCode)
    const found = await findRefund(ctx, merchants, refundId)
    await decideApproval(ctx, found, decision, access)
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
