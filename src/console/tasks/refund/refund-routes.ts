import { Hono } from 'hono'
import type { Scope } from '../../../access/keys.ts'
import { listDeciders } from '../../../access/principal.ts'
import { assignRefund, noteRefund } from '../../../decisions/annotations.ts'
import { DECISIONS } from '../../../decisions/obstacles.ts'
import { decideRefund } from '../../../decisions/refunds.ts'
import { DomainError, REFUSALS } from '../../../errors.ts'
import type { FoundRefund } from '../../../refunds/find.ts'
import type { ConsoleContext } from '../../context.ts'
import type { ConsoleEnv, ConsoleRequest, FormFields } from '../../env.ts'
import { readForm } from '../../forms/protect-forms.ts'
import { refundPagePath } from '../../paths.ts'
import { requireScope } from '../../permissions.ts'
import { redirectWith } from '../../redirect.ts'
import type { NoticeCode } from '../../texts/text.ts'
import { t } from '../../view.ts'
import { explainRefusal } from '../explain-refusal.ts'
import type { PageState } from '../page-state.ts'
import {
  ApprovalFields,
  CancellationFields,
  NoteFields,
  parseFields,
  ResolutionFields,
} from '../parse-fields.ts'
import { describeEvents } from './describe-events.ts'
import { findPathRefund, readRefundPage } from './read-refund.ts'
import { renderRefundPage } from './render-refund.tsx'

const PATH = '/console/refunds/:merchant/:refundId'

/** Carries out a form about a refund: the message to lead on with, or the problems of its fields. */
type Carry = (
  found: FoundRefund,
  fields: FormFields,
  c: ConsoleRequest,
) => Promise<{ notice: NoticeCode } | { problems: Record<string, string> }>

type FormRoute = { form: string; scope: Scope; carry: Carry }

/** Serves the page of a refund and the decisions about it. */
export function refundPageRoutes(ctx: ConsoleContext): Hono<ConsoleEnv> {
  const app = new Hono<ConsoleEnv>()
  app.get(PATH, async (c) => {
    requireScope(c, 'refunds:read')
    const { refund } = await findPathRefund(ctx, c)
    return await renderRefundPage(ctx, c, await readRefundPage(ctx, c, refund))
  })
  for (const route of listForms(ctx)) {
    app.post(`${PATH}/${route.form}`, (c) => carryOut(ctx, c, route))
  }
  return app
}

function listForms(ctx: ConsoleContext): FormRoute[] {
  return [
    { form: 'approval', scope: DECISIONS.approve.scope, carry: approve(ctx) },
    { form: 'resolution', scope: DECISIONS.succeeded.scope, carry: resolve(ctx) },
    { form: 'cancellation', scope: DECISIONS.cancel.scope, carry: cancel(ctx) },
    { form: 'note', scope: 'ops', carry: note(ctx) },
    { form: 'assignee', scope: 'ops', carry: assign(ctx) },
  ]
}

/** Carries out a form. What was refused, and why, is shown on the page as it is now, with the form filled in. */
async function carryOut(
  ctx: ConsoleContext,
  c: ConsoleRequest,
  { form, scope, carry }: FormRoute,
): Promise<Response> {
  requireScope(c, scope)
  const found = await findPathRefund(ctx, c)
  const fields = await readForm(c)
  const { merchantCode, refundId } = found.refund
  const show = async (state: PageState) => {
    const shown = await readRefundPage(ctx, c, { merchantCode, refundId })
    const events = state.status === 422 ? [] : describeEvents(shown.view, c.get('access').name)
    const messages = [...(state.messages ?? []), ...events]
    return await renderRefundPage(ctx, c, shown, { form, fields, ...state, messages })
  }
  try {
    const done = await carry(found, fields, c)
    if ('notice' in done)
      return redirectWith(c, refundPagePath(merchantCode, refundId), done.notice)
    return await show({ status: 422, problems: done.problems })
  } catch (error) {
    const message = error instanceof DomainError ? explainRefusal(error) : undefined
    if (!(error instanceof DomainError) || message === undefined) throw error
    c.set('refusal', error.code)
    const { status } = REFUSALS[error.code]
    return await show({ status, messages: [message], evidence: error.evidence })
  }
}

function approve(ctx: ConsoleContext): Carry {
  return async (found, fields, c) => {
    const parsed = parseFields(ApprovalFields, fields)
    if ('problems' in parsed) return parsed
    const { decision, reason, version } = parsed.data
    await decideRefund(ctx, found, { decision, reason, shown: version }, c.get('access'))
    return { notice: decision === 'approve' ? 'refundApproved' : 'refundDeclined' }
  }
}

function resolve(ctx: ConsoleContext): Carry {
  return async (found, fields, c) => {
    const parsed = parseFields(ResolutionFields, fields)
    if ('problems' in parsed) return parsed
    const { outcome, reason, againstEvidence, version } = parsed.data
    const against = againstEvidence === 'true'
    const request = { decision: outcome, reason, againstEvidence: against, shown: version }
    await decideRefund(ctx, found, request, c.get('access'))
    return { notice: 'refundDecided' }
  }
}

function cancel(ctx: ConsoleContext): Carry {
  return async (found, fields, c) => {
    const parsed = parseFields(CancellationFields, fields)
    if ('problems' in parsed) return parsed
    const { cancelReason: reason, version } = parsed.data
    const request = { decision: 'cancel' as const, reason, shown: version }
    await decideRefund(ctx, found, request, c.get('access'))
    return { notice: 'refundCancelled' }
  }
}

function note(ctx: ConsoleContext): Carry {
  return async (found, fields, c) => {
    const parsed = parseFields(NoteFields, fields)
    if ('problems' in parsed) return parsed
    await noteRefund(ctx, found, parsed.data.text, c.get('access'))
    return { notice: 'noteAdded' }
  }
}

function assign(ctx: ConsoleContext): Carry {
  return async (found, { name = '' }, c) => {
    const access = c.get('access')
    const known = ['', access.name, ...(await listDeciders(ctx.sql, found.refund.merchantCode))]
    if (!known.includes(name)) return { problems: { name: t('decisions.problems.name') } }
    await assignRefund(ctx, found, name === '' ? null : name, access)
    return { notice: 'assigned' }
  }
}
