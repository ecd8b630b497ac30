import { Hono } from 'hono'
import { DomainError } from '../../errors.ts'
import { StaleVersionError } from '../../refunds/target.ts'
import type { ConsoleContext } from '../context.ts'
import type { ConsoleEnv, FormFields } from '../env.ts'
import { readDraft } from '../forms/draft.ts'
import { readForm } from '../forms/protect-forms.ts'
import { nameAnchor, storyPath } from '../paths.ts'
import { requireScope } from '../permissions.ts'
import { redirectWith } from '../redirect.ts'
import { t } from '../view.ts'
import { EMPTY_VALUES, parseValues, readValues } from './fields.ts'
import type { RefundFlow } from './flow.ts'
import { renderForm } from './form-page.tsx'
import { issueTicket, type OpenedForm, openForm } from './open-form.ts'
import { paymentFlow } from './payment-flow.tsx'
import { renderPreview } from './preview-page.tsx'
import { reasonRoutes } from './reason-routes.ts'
import { refuseForm, refuseStale, type SentForm } from './refuse-form.tsx'
import { surplusFlow } from './surplus-flow.tsx'
import { type PreviewedContent, readPreview, readTicket, signPreview } from './ticket.ts'

/**
 * Serves a form in three steps: the form, a preview of what it would do, and its confirmation, which leads to the story
 * of the refund. What is confirmed is what the preview showed, of the version that the form was shown for.
 */
export function refundFormRoutes(ctx: ConsoleContext, flow: RefundFlow): Hono<ConsoleEnv> {
  const app = new Hono<ConsoleEnv>()
  app.get(flow.route, async (c) => {
    requireScope(c, 'refunds:write')
    return showForm(await openForm(ctx, flow, c))
  })
  app.post(flow.route, async (c) => {
    requireScope(c, 'refunds:write')
    const form = await readForm(c)
    if (form.step !== 'confirm') c.set('isDryRun', true)
    return await serveForm(await openForm(ctx, flow, c), form)
  })
  return app
}

/** Shows the form, empty, or as the person had filled it in before they had to sign in again or the database was away. */
function showForm(opened: OpenedForm) {
  const { c, ctx, owner, subject, reasons } = opened
  const typed = readDraft(c, subject.path)
  const { ticket: kept = '' } = typed
  const values = kept === '' ? EMPTY_VALUES : readValues(typed)
  // The same ticket: a refund that was requested under it without an answer is not requested again.
  const ticket = readTicket(ctx.encryption, owner, kept) ? kept : issueTicket(opened)
  return renderForm(c, { subject, reasons, ticket, values })
}

async function serveForm(opened: OpenedForm, form: FormFields) {
  const { c, ctx, owner, subject, reasons } = opened
  const values = readValues(form)
  const token = form.ticket ?? ''
  const ticket = readTicket(ctx.encryption, owner, token)
  if (!ticket) {
    const renewed = { subject, reasons, values, ticket: issueTicket(opened) }
    return renderForm(c, { ...renewed, alerts: [t('refundForm.alerts.expired')], status: 422 })
  }
  if (form.step === 'edit') return renderForm(c, { subject, reasons, values, ticket: token })
  const sent = { opened, values, token, ticket }
  try {
    if (form.step !== 'confirm') return await preview(sent, [])
    const previewed = readPreview(ctx.encryption, token, form.previewed ?? '')
    if (previewed) return await confirm(sent, previewed)
    return await preview(sent, [t('refundForm.preview.checkAgain')])
  } catch (error) {
    if (error instanceof StaleVersionError) return await refuseStale(sent)
    if (error instanceof DomainError) return await refuseForm(sent, error)
    throw error
  }
}

async function preview({ opened, values, token, ticket }: SentForm, alerts: readonly string[]) {
  const { c, ctx, access, flow, subject, reasons } = opened
  const { needsReceiver } = subject
  const parsed = parseValues(values, { needsReceiver, reasons })
  if (!parsed.refund) {
    const { problems } = parsed
    return renderForm(c, { subject, reasons, values, ticket: token, problems, status: 422 })
  }
  const asked = { ...parsed.refund, expectedVersion: ticket.version }
  const previewed = await flow.preview(access, subject, asked)
  // What is shown is what is sent, also where all that is left was chosen.
  const refund = { ...parsed.refund, amount: previewed.amount }
  const hidden = { ticket: token, previewed: signPreview(ctx.encryption, token, refund) }
  return renderPreview(c, { subject, refund, preview: previewed, values, hidden, alerts })
}

async function confirm({ opened, ticket }: SentForm, refund: PreviewedContent) {
  const { c, ctx, access, flow, subject } = opened
  const asked = { ...refund, expectedVersion: ticket.version }
  const requested = await flow.request(access, subject, ticket.key, asked)
  const { refundId, merchantCode, replayed } = requested
  const { name, requestId } = access
  ctx.log.info({ merchantCode, refundId, key: name, requestId, replayed }, 'refund requested')
  const story = storyPath(subject, nameAnchor('refund', refundId))
  if (requested.replayed) return redirectWith(c, story, 'refundRepeated')
  const { needsApproval } = requested.stored.refund
  return redirectWith(c, story, needsApproval ? 'refundAwaiting' : 'refundRequested')
}

/** The forms that refund, and the reasons that they offer. */
export function refundRoutes(ctx: ConsoleContext): Hono<ConsoleEnv> {
  const app = new Hono<ConsoleEnv>()
  app.route('/', refundFormRoutes(ctx, paymentFlow(ctx)))
  app.route('/', refundFormRoutes(ctx, surplusFlow(ctx)))
  app.route('/', reasonRoutes(ctx))
  return app
}
