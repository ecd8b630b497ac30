import { z } from '@hono/zod-openapi'
import { narrowMerchants } from '../access/authenticate.ts'
import type { Access } from '../access/types.ts'
import { Discrepancy, showDiscrepancy } from '../discrepancies/routes.ts'
import { findDiscrepancy } from '../discrepancies/store.ts'
import type { RefusalCode } from '../errors.ts'
import { createRouter } from '../http/app.ts'
import { Hold } from '../payments/view.ts'
import { ExternalRefund, findExternalRefund, showExternalRefund } from '../refunds/external-view.ts'
import type { TransactionsContext } from '../transactions/types.ts'
import { annotateDiscrepancy, type DiscrepancyForm, resolveDiscrepancy } from './discrepancies.ts'
import { EXTERNAL_OUTCOMES, resolveExternalRefund } from './external.ts'
import { changeHold, findSubject, HOLD_TARGETS, type HoldTarget } from './holds.ts'
import { AgainstEvidence, becauseOf, decisionRoute, RequiredText } from './refund-routes.ts'

const ExternalResolution = z
  .strictObject({
    outcome: z.enum(EXTERNAL_OUTCOMES),
    reason: RequiredText,
    againstEvidence: AgainstEvidence.openapi({
      description: 'Required to contradict what is known, or an earlier decision',
    }),
  })
  .openapi('ExternalResolution', {
    example: { outcome: 'part_of_first_sight', reason: 'portal, refund of 20 November' },
  })

const resolveExternal = decisionRoute({
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

const HoldReason = becauseOf('HoldReason', 'the account was broken into')

const HoldState = z
  .strictObject({
    target: z.enum(HOLD_TARGETS),
    id: z.string(),
    merchantCode: z.string(),
    hold: Hold.nullable(),
  })
  .openapi('HoldState')

const HELD = {
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

const setHold = decisionRoute({
  ...HELD,
  method: 'put',
  operationId: 'setHold',
  summary: 'Hold the refunds of an account or a payment, or one refund: nothing held is sent',
  shown: ['The hold; from now on no attempt to send is recorded', HoldState],
  refusals: [...UNKNOWN, 'ambiguous_merchant'],
})

const releaseHold = decisionRoute({
  ...HELD,
  method: 'delete',
  operationId: 'releaseHold',
  summary: 'Release a hold',
  shown: ['`hold` is null', HoldState],
  refusals: [...UNKNOWN, 'ambiguous_merchant', 'not_held', 'same_person'],
})

const DiscrepancyResolution = becauseOf(
  'DiscrepancyResolution',
  'refunded at the portal by the support team, ticket 4711',
)
const DiscrepancyNote = z
  .strictObject({ text: RequiredText })
  .openapi('DiscrepancyNote', { example: { text: 'asked the gateway, ticket 4711' } })
const DiscrepancyAssignee = z
  .strictObject({ name: RequiredText.max(100, 'must be at most 100 characters').nullable() })
  .openapi('DiscrepancyAssignee', { example: { name: 'Linh' } })

function discrepancyRoute<F extends DiscrepancyForm, Body extends z.ZodType>(
  { form, ...of }: { form: F; operationId: string; summary: string; body: Body },
  ...refusals: RefusalCode[]
) {
  return decisionRoute({
    ...{ ...of, method: 'post', tag: 'Discrepancies' },
    path: `/v1/discrepancies/{id}/${form}` as const,
    params: z.object({
      id: z.string().openapi({ description: 'The `id` of the discrepancy', example: '17' }),
    }),
    shown: ['The discrepancy as it is now', Discrepancy],
    refusals: ['discrepancy_not_found', 'discrepancy_resolved', ...refusals],
  })
}

const resolveOne = discrepancyRoute(
  {
    form: 'resolution',
    operationId: 'resolveDiscrepancy',
    summary: 'Resolve a discrepancy; it stays resolved while both sides are the same',
    body: DiscrepancyResolution,
  },
  'same_person',
)
const note = discrepancyRoute({
  form: 'note',
  operationId: 'noteDiscrepancy',
  summary: 'Add a note to a discrepancy',
  body: DiscrepancyNote,
})
const assign = discrepancyRoute({
  form: 'assignee',
  operationId: 'assignDiscrepancy',
  summary: 'Assign an open discrepancy to a person, or to nobody (`null`)',
  body: DiscrepancyAssignee,
})

type Asked = { merchantCode?: string | undefined }

export function decisionRoutes(ctx: TransactionsContext) {
  const change = async (
    access: Access,
    held: boolean,
    {
      merchantCode: named,
      target,
      id,
      reason,
    }: Asked & { target: HoldTarget; id: string; reason: string },
  ) => {
    const subject = await findSubject(ctx.db.sql, narrowMerchants(access, named), target, id)
    const operation = `${held ? 'PUT' : 'DELETE'} ${HELD.path}`
    const hold = await changeHold(ctx, access, subject, { held, reason, operation })
    return { target, id: subject.id, merchantCode: subject.merchantCode, hold }
  }
  return createRouter()
    .openapi(setHold, async (c) => {
      const of = { ...c.req.valid('param'), ...c.req.valid('query'), ...c.req.valid('json') }
      return c.json(await change(c.get('access'), true, of), 200)
    })
    .openapi(releaseHold, async (c) => {
      const of = { ...c.req.valid('param'), ...c.req.valid('query'), ...c.req.valid('json') }
      return c.json(await change(c.get('access'), false, of), 200)
    })
    .openapi(resolveExternal, async (c) => {
      const access = c.get('access')
      const merchants = narrowMerchants(access, c.req.valid('query').merchantCode)
      const found = await findExternalRefund(ctx, merchants, c.req.valid('param').externalRefundId)
      await resolveExternalRefund(ctx, found, c.req.valid('json'), access)
      const decided = await findExternalRefund(ctx, [found.merchantCode], found.id)
      return c.json(showExternalRefund(decided), 200)
    })
}

export function reviewRoutes(ctx: TransactionsContext) {
  const find = (access: Access, { id, merchantCode }: Asked & { id: string }) =>
    findDiscrepancy(ctx.db.sql, narrowMerchants(access, merchantCode), id)
  return createRouter()
    .openapi(resolveOne, async (c) => {
      const access = c.get('access')
      const found = await find(access, { ...c.req.valid('param'), ...c.req.valid('query') })
      const decided = await resolveDiscrepancy(ctx, access, found, c.req.valid('json'))
      return c.json(showDiscrepancy(decided), 200)
    })
    .openapi(note, async (c) => {
      const access = c.get('access')
      const found = await find(access, { ...c.req.valid('param'), ...c.req.valid('query') })
      const { text } = c.req.valid('json')
      const noted = await annotateDiscrepancy(ctx, access, found, { note: text })
      return c.json(showDiscrepancy(noted), 200)
    })
    .openapi(assign, async (c) => {
      const access = c.get('access')
      const found = await find(access, { ...c.req.valid('param'), ...c.req.valid('query') })
      const { name } = c.req.valid('json')
      const assigned = await annotateDiscrepancy(ctx, access, found, { assignee: name })
      return c.json(showDiscrepancy(assigned), 200)
    })
}
