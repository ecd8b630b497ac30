import { createRoute, z } from '@hono/zod-openapi'
import { narrowMerchants, withScope } from '../access/authenticate.ts'
import type { Access } from '../access/types.ts'
import type { Context } from '../context.ts'
import { createRouter } from '../http/app.ts'
import { BODY_REFUSALS, describeRefusals, describeResponse } from '../http/describe.ts'
import { MerchantCode } from '../http/fields.ts'
import { Hold } from '../payments/view.ts'
import { Reason } from '../refunds/request-schema.ts'
import { findSubject, HOLD_TARGETS, type HoldTarget } from './hold-subject.ts'
import { changeHold } from './holds.ts'

const PATH = '/v1/holds/{target}/{id}'

/** The state of something that can be held, after a change. */
const HoldState = z
  .strictObject({
    target: z.enum(HOLD_TARGETS),
    id: z.string(),
    merchantCode: z.string(),
    hold: Hold.nullable(),
  })
  .openapi('HoldState')

const HoldReason = z
  .strictObject({ reason: Reason.min(1, 'must not be empty') })
  .openapi('HoldReason', { example: { reason: 'the account was broken into' } })

const shared = {
  tags: ['Refunds'],
  ...withScope('ops'),
  request: {
    params: z.object({
      target: z.enum(HOLD_TARGETS).openapi({ description: 'What is held' }),
      id: z.string().openapi({
        description: 'The merchant code, or the id of the payment or the refund',
        example: '1439211',
      }),
    }),
    query: z.strictObject({ merchantCode: MerchantCode }),
    body: { content: { 'application/json': { schema: HoldReason } }, required: true },
  },
}

const UNKNOWN = ['merchant_not_found', 'payment_not_found', 'refund_not_found'] as const

const set = createRoute({
  method: 'put',
  path: PATH,
  operationId: 'setHold',
  summary: 'Hold the refunds of an account or a payment, or one refund: nothing held is sent',
  ...shared,
  responses: {
    200: describeResponse('The hold; from now on no attempt to send is recorded', HoldState),
    ...describeRefusals(...BODY_REFUSALS, ...UNKNOWN, 'ambiguous_merchant'),
  },
})

const release = createRoute({
  method: 'delete',
  path: PATH,
  operationId: 'releaseHold',
  summary: 'Release a hold',
  ...shared,
  responses: {
    200: describeResponse('`hold` is null', HoldState),
    ...describeRefusals(
      ...BODY_REFUSALS,
      ...UNKNOWN,
      'ambiguous_merchant',
      'not_held',
      'same_person',
    ),
  },
})

type Wanted = {
  held: boolean
  access: Access
  merchantCode: string | undefined
  target: HoldTarget
  id: string
  reason: string
}

/** Creates the operators' routes on holds. */
export function holdRoutes(ctx: Context) {
  async function change({ held, access, merchantCode: named, target, id, reason }: Wanted) {
    const merchants = narrowMerchants(access, named)
    const subject = await findSubject(ctx.sql, merchants, target, id)
    const operation = `${held ? 'PUT' : 'DELETE'} ${PATH}`
    const hold = await changeHold(ctx, access, subject, { held, reason, operation })
    const { merchantCode } = subject
    return { target, id: subject.id, merchantCode, hold }
  }
  return createRouter()
    .openapi(set, async (c) => {
      const named = { ...c.req.valid('param'), ...c.req.valid('query'), ...c.req.valid('json') }
      const { merchantCode, ...wanted } = { merchantCode: undefined, ...named }
      return c.json(
        await change({ held: true, access: c.get('access'), merchantCode, ...wanted }),
        200,
      )
    })
    .openapi(release, async (c) => {
      const named = { ...c.req.valid('param'), ...c.req.valid('query'), ...c.req.valid('json') }
      const { merchantCode, ...wanted } = { merchantCode: undefined, ...named }
      return c.json(
        await change({ held: false, access: c.get('access'), merchantCode, ...wanted }),
        200,
      )
    })
}
