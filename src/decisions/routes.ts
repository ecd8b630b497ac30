import { narrowMerchants } from '../access/authenticate.ts'
import type { Access } from '../access/types.ts'
import { showDiscrepancy } from '../discrepancies/routes.ts'
import { findDiscrepancy } from '../discrepancies/store.ts'
import { createRouter } from '../http/app.ts'
import { findExternalRefund, showExternalRefund } from '../refunds/external-view.ts'
import { findRefund } from '../refunds/find.ts'
import { showRefund } from '../refunds/view.ts'
import type { TransactionsContext } from '../transactions/types.ts'
import {
  approve,
  assign,
  cancel,
  decline,
  HELD,
  note,
  releaseHold,
  resolve,
  resolveExternal,
  resolveOne,
  setHold,
} from './declare-routes.ts'
import { annotateDiscrepancy, resolveDiscrepancy } from './discrepancies.ts'
import { resolveExternalRefund } from './external.ts'
import { changeHold, findSubject } from './holds.ts'
import { decideRefund, type RefundDecision } from './refunds.ts'
import type { HoldTarget } from './second-person.ts'

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
    .openapi(setHold, async (c) => {
      const of = { ...c.req.valid('param'), ...c.req.valid('query'), ...c.req.valid('json') }
      return c.json(await change(c.get('access'), true, of), 200)
    })
    .openapi(releaseHold, async (c) => {
      const of = { ...c.req.valid('param'), ...c.req.valid('query'), ...c.req.valid('json') }
      return c.json(await change(c.get('access'), false, of), 200)
    })
}

export function approvalRoutes(ctx: TransactionsContext) {
  return createRouter()
    .openapi(resolveExternal, async (c) => {
      const access = c.get('access')
      const merchants = narrowMerchants(access, c.req.valid('query').merchantCode)
      const found = await findExternalRefund(ctx, merchants, c.req.valid('param').externalRefundId)
      await resolveExternalRefund(ctx, found, c.req.valid('json'), access)
      const decided = await findExternalRefund(ctx, [found.merchantCode], found.id)
      return c.json(showExternalRefund(decided), 200)
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
  { refundId, merchantCode }: Asked & { refundId: string },
  decision: RefundDecision,
) {
  const found = await findRefund(ctx, narrowMerchants(access, merchantCode), refundId)
  await decideRefund(ctx, found, decision, access)
  const decided = await findRefund(ctx, [found.refund.merchantCode], found.refund.refundId)
  return showRefund(ctx.encryption, decided)
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
