import { createRoute, z } from '@hono/zod-openapi'
import { narrowMerchants, withScope } from '../access/authenticate.ts'
import type { Access } from '../access/types.ts'
import type { Context } from '../context.ts'
import { Discrepancy, showDiscrepancy } from '../discrepancies/routes.ts'
import { createRouter } from '../http/app.ts'
import { BODY_REFUSALS, describeRefusals, describeResponse } from '../http/describe.ts'
import { MerchantCode } from '../http/fields.ts'
import { Reason } from '../refunds/request-schema.ts'
import { addNote, assignDiscrepancy } from './annotations.ts'
import { findDiscrepancy, resolveDiscrepancy } from './discrepancies.ts'

const Text = Reason.min(1, 'must not be empty')
const DiscrepancyResolution = z.strictObject({ reason: Text }).openapi('DiscrepancyResolution', {
  example: { reason: 'refunded at the portal by the support team, ticket 4711' },
})
const DiscrepancyNote = z
  .strictObject({ text: Text })
  .openapi('DiscrepancyNote', { example: { text: 'asked the gateway, ticket 4711' } })
const DiscrepancyAssignee = z
  .strictObject({ name: Text.max(100, 'must be at most 100 characters').nullable() })
  .openapi('DiscrepancyAssignee', { example: { name: 'Linh' } })

const shared = { method: 'post' as const, tags: ['Discrepancies'], ...withScope('ops') }

function requestOf<B extends z.ZodType>(schema: B) {
  return {
    params: z.object({
      id: z.string().openapi({ description: 'The `id` of the discrepancy', example: '17' }),
    }),
    query: z.strictObject({ merchantCode: MerchantCode }),
    body: { content: { 'application/json': { schema } }, required: true as const },
  }
}

const REFUSALS = [...BODY_REFUSALS, 'discrepancy_not_found', 'discrepancy_resolved'] as const
const shown = { 200: describeResponse('The discrepancy as it is now', Discrepancy) }
const responses = { ...shown, ...describeRefusals(...REFUSALS) }

const resolve = createRoute({
  ...shared,
  path: '/v1/discrepancies/{id}/resolution',
  operationId: 'resolveDiscrepancy',
  summary: 'Resolve a discrepancy; it stays resolved while both sides are the same',
  request: requestOf(DiscrepancyResolution),
  responses: { ...shown, ...describeRefusals(...REFUSALS, 'same_person') },
})

const note = createRoute({
  ...shared,
  path: '/v1/discrepancies/{id}/note',
  operationId: 'noteDiscrepancy',
  summary: 'Add a note to a discrepancy',
  request: requestOf(DiscrepancyNote),
  responses,
})

const assign = createRoute({
  ...shared,
  path: '/v1/discrepancies/{id}/assignee',
  operationId: 'assignDiscrepancy',
  summary: 'Assign an open discrepancy to a person, or to nobody (`null`)',
  request: requestOf(DiscrepancyAssignee),
  responses,
})

/** Creates the operators' routes to decide discrepancies. */
export function reviewRoutes(ctx: Context) {
  const find = (access: Access, merchantCode: string | undefined, id: string) =>
    findDiscrepancy(ctx.sql, narrowMerchants(access, merchantCode), id)
  return createRouter()
    .openapi(resolve, async (c) => {
      const access = c.get('access')
      const found = await find(access, c.req.valid('query').merchantCode, c.req.valid('param').id)
      const decision = c.req.valid('json')
      return c.json(showDiscrepancy(await resolveDiscrepancy(ctx, access, found, decision)), 200)
    })
    .openapi(note, async (c) => {
      const access = c.get('access')
      const found = await find(access, c.req.valid('query').merchantCode, c.req.valid('param').id)
      const { text } = c.req.valid('json')
      return c.json(showDiscrepancy(await addNote(ctx, access, found, text)), 200)
    })
    .openapi(assign, async (c) => {
      const access = c.get('access')
      const found = await find(access, c.req.valid('query').merchantCode, c.req.valid('param').id)
      const { name } = c.req.valid('json')
      return c.json(showDiscrepancy(await assignDiscrepancy(ctx, access, found, name)), 200)
    })
}
