import { Hono } from 'hono'
import { narrowMerchants } from '../../access/authenticate.ts'
import { DomainError } from '../../errors.ts'
import {
  addReason,
  endReason,
  listReasons,
  MAX_REASONS,
  type ReasonChanged,
  ReasonLabel,
  raiseReason,
  renameReason,
} from '../../refunds/reasons.ts'
import type { ConsoleContext } from '../context.ts'
import type { ConsoleEnv, ConsoleRequest, FormFields } from '../env.ts'
import { readForm } from '../forms/protect-forms.ts'
import { requireRole } from '../permissions.ts'
import { redirectWith } from '../redirect.ts'
import type { NoticeCode } from '../texts/text.ts'
import { t } from '../view.ts'
import { REASONS_PATH, type ReasonPage, renderReasons } from './reason-page.tsx'

/** The page on which admins keep the reasons that their accounts offer. */
export function reasonRoutes(ctx: ConsoleContext): Hono<ConsoleEnv> {
  const app = new Hono<ConsoleEnv>()
  app.get(REASONS_PATH, async (c) => {
    requireRole(c, 'admin')
    return renderReasons(c, await readPage(ctx, c, c.req.query('merchant')))
  })
  app.post(REASONS_PATH, async (c) => {
    requireRole(c, 'admin')
    return await changeList(ctx, c, await readForm(c))
  })
  return app
}

async function readPage(
  ctx: ConsoleContext,
  c: ConsoleRequest,
  named: string | undefined,
): Promise<ReasonPage> {
  const { merchants } = c.get('access')
  const [merchantCode] = named === undefined ? merchants : narrowMerchants(c.get('access'), named)
  if (merchantCode === undefined) {
    throw new DomainError('merchant_not_found', `No merchant account ${named ?? ''}`)
  }
  return { merchants, merchantCode, reasons: await listReasons(ctx, merchantCode) }
}

const DONE: Record<string, NoticeCode> = {
  add: 'reasonAdded',
  rename: 'reasonRenamed',
  raise: 'reasonRaised',
  end: 'reasonEnded',
}

async function changeList(ctx: ConsoleContext, c: ConsoleRequest, form: FormFields) {
  const { merchant = '', action = '' } = form
  const page = await readPage(ctx, c, merchant)
  const id = action === 'add' ? undefined : readId(form.id)
  const label = (id === undefined ? form.label : form[`label-${id}`]) ?? ''
  const outcome = await change(ctx, c, page.merchantCode, { action, id, label })
  const notice = DONE[action]
  if (outcome === 'done' && notice) {
    return redirectWith(c, `${REASONS_PATH}?merchant=${encodeURIComponent(merchant)}`, notice)
  }
  const now = await readPage(ctx, c, merchant)
  if (outcome === 'gone')
    return renderReasons(c, { ...now, alert: t('reasons.problems.gone'), status: 409 })
  const problem =
    outcome === 'full'
      ? t('reasons.problems.full', { most: MAX_REASONS })
      : outcome === 'exists'
        ? t('reasons.problems.exists')
        : t('reasons.problems.label')
  const refused = { id, label: label.slice(0, 500).toWellFormed(), problem }
  return renderReasons(c, { ...now, refused, status: 422 })
}

type Asked = { action: string; id: number | undefined; label: string }

/** @returns undefined for a text that is no reason */
async function change(
  ctx: ConsoleContext,
  c: ConsoleRequest,
  merchantCode: string,
  { action, id, label }: Asked,
): Promise<ReasonChanged | undefined> {
  const asked = { merchantCode, actor: c.get('access'), operation: `POST ${REASONS_PATH}` }
  if (action === 'end') return id === undefined ? 'gone' : await endReason(ctx, asked, id)
  if (action === 'raise') return id === undefined ? 'gone' : await raiseReason(ctx, asked, id)
  const parsed = ReasonLabel.safeParse(label)
  if (!parsed.success) return undefined
  if (action === 'add') return await addReason(ctx, asked, parsed.data)
  if (action !== 'rename') throw new DomainError('invalid_request', `There is no action ${action}`)
  return id === undefined ? 'gone' : await renameReason(ctx, asked, id, parsed.data)
}

/** Reads the id of a reason; another text is no reason's. */
function readId(text = ''): number | undefined {
  return /^\d{1,15}$/.test(text) ? Number(text) : undefined
}
