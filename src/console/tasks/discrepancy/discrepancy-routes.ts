import { Hono } from 'hono'
import { listDeciders } from '../../../access/principal.ts'
import { addNote, assignDiscrepancy } from '../../../decisions/annotations.ts'
import { resolveDiscrepancy } from '../../../decisions/discrepancies.ts'
import { resolveExternalRefund } from '../../../decisions/external.ts'
import type { DiscrepancyRow } from '../../../discrepancies/kinds.ts'
import { DomainError, REFUSALS } from '../../../errors.ts'
import { deriveExternalState, findExternalRefund } from '../../../refunds/external-view.ts'
import type { ConsoleContext } from '../../context.ts'
import type { ConsoleEnv, ConsoleRequest, FormFields } from '../../env.ts'
import { readForm } from '../../forms/protect-forms.ts'
import { discrepancyPath } from '../../paths.ts'
import { requireScope } from '../../permissions.ts'
import { redirectWith } from '../../redirect.ts'
import type { NoticeCode } from '../../texts/text.ts'
import { t } from '../../view.ts'
import { explainRefusal } from '../explain-refusal.ts'
import type { PageState } from '../page-state.ts'
import { DiscrepancyFields, ExternalFields, NoteFields, parseFields } from '../parse-fields.ts'
import { findPathDiscrepancy, readDiscrepancyPage } from './read-discrepancy.ts'
import { renderDiscrepancyPage } from './render-discrepancy.tsx'

const PATH = '/console/discrepancies/:merchant/:id'

/** Carries out a form about a discrepancy: the message to lead on with, or the problems of its fields. */
type Carry = (
  found: DiscrepancyRow,
  fields: FormFields,
  c: ConsoleRequest,
) => Promise<{ notice: NoticeCode } | { problems: Record<string, string> }>

type FormRoute = { form: string; carry: Carry }

/** Serves the page of a discrepancy and the decisions about it. */
export function discrepancyPageRoutes(ctx: ConsoleContext): Hono<ConsoleEnv> {
  const app = new Hono<ConsoleEnv>()
  app.get(PATH, async (c) => {
    requireScope(c, 'ops')
    const found = await findPathDiscrepancy(ctx, c)
    return await renderDiscrepancyPage(c, await readDiscrepancyPage(ctx, c, found))
  })
  const forms: FormRoute[] = [
    { form: 'resolution', carry: resolve(ctx) },
    { form: 'external', carry: resolveExternal(ctx) },
    { form: 'note', carry: note(ctx) },
    { form: 'assignee', carry: assign(ctx) },
  ]
  for (const route of forms) app.post(`${PATH}/${route.form}`, (c) => carryOut(ctx, c, route))
  return app
}

/** Carries out a form. What was refused, and why, is shown on the page as it is now, with the form filled in. */
async function carryOut(
  ctx: ConsoleContext,
  c: ConsoleRequest,
  { form, carry }: FormRoute,
): Promise<Response> {
  requireScope(c, 'ops')
  const found = await findPathDiscrepancy(ctx, c)
  const fields = await readForm(c)
  const show = async (state: PageState) => {
    const shown = await readDiscrepancyPage(ctx, c, await findPathDiscrepancy(ctx, c))
    const events = state.status === 422 ? [] : describeResolution(shown.row)
    const messages = [...(state.messages ?? []), ...events]
    return await renderDiscrepancyPage(c, shown, { form, fields, ...state, messages })
  }
  try {
    const done = await carry(found, fields, c)
    if ('problems' in done) return await show({ status: 422, problems: done.problems })
    return redirectWith(c, discrepancyPath(found.merchantCode, found.id), done.notice)
  } catch (error) {
    const message = error instanceof DomainError ? explain(error, form) : undefined
    if (!(error instanceof DomainError) || message === undefined) throw error
    c.set('refusal', error.code)
    const { status } = REFUSALS[error.code]
    return await show({ status, messages: [message], evidence: error.evidence })
  }
}

/** An external refund that cannot be decided so has not changed: its amount does not fit. */
function explain(error: DomainError, form: string): string | undefined {
  if (error.code === 'same_person') return t('discrepancyPage.refused.same_person')
  const isUnfit = form === 'external' && error.code === 'not_decidable'
  if (!isUnfit || error.changed) return explainRefusal(error)
  return t('discrepancyPage.refused.notFitting')
}

function describeResolution({ resolvedAt, resolvedBy, resolution }: DiscrepancyRow): string[] {
  if (resolvedAt === null) return []
  return [
    resolvedBy === null
      ? t('decisions.happened.agreed')
      : t('decisions.happened.resolved', { name: resolvedBy, reason: resolution ?? '' }),
  ]
}

function resolve(ctx: ConsoleContext): Carry {
  return async (found, fields, c) => {
    const parsed = parseFields(DiscrepancyFields, fields)
    if ('problems' in parsed) return parsed
    await resolveDiscrepancy(ctx, c.get('access'), found, parsed.data)
    return { notice: 'discrepancyResolved' }
  }
}

/** Decides a refund of the discrepancy's payment that was made elsewhere. */
function resolveExternal(ctx: ConsoleContext): Carry {
  return async ({ merchantCode, paymentId }, fields, c) => {
    const parsed = parseFields(ExternalFields, fields)
    if ('problems' in parsed) return parsed
    const { externalId, state, externalOutcome: outcome, externalReason: reason } = parsed.data
    const external = await findExternalRefund(ctx, [merchantCode], externalId)
    if (external.paymentId !== paymentId) {
      throw new DomainError('external_refund_not_found', `No external refund ${externalId}`)
    }
    // What is read here is compared again within the commit.
    if (deriveExternalState(external) !== state) {
      const detail = 'it has changed since it was shown'
      throw new DomainError('not_decidable', detail, { changed: true })
    }
    const againstEvidence = parsed.data.againstEvidence === 'true'
    const decision = { outcome, reason, againstEvidence }
    await resolveExternalRefund(ctx, external, decision, c.get('access'))
    return { notice: 'externalDecided' }
  }
}

function note(ctx: ConsoleContext): Carry {
  return async (found, fields, c) => {
    const parsed = parseFields(NoteFields, fields)
    if ('problems' in parsed) return parsed
    await addNote(ctx, c.get('access'), found, parsed.data.text)
    return { notice: 'noteAdded' }
  }
}

function assign(ctx: ConsoleContext): Carry {
  return async (found, { name = '' }, c) => {
    const access = c.get('access')
    const known = ['', access.name, ...(await listDeciders(ctx.sql, found.merchantCode))]
    if (!known.includes(name)) return { problems: { name: t('decisions.problems.name') } }
    await assignDiscrepancy(ctx, access, found, name === '' ? null : name)
    return { notice: 'assigned' }
  }
}
