import { randomBytes } from 'node:crypto'
import type { z } from 'zod'
import { DomainError } from '../errors.ts'
import { Notice } from '../platform/html/components.tsx'
import { findTarget } from '../refunds/idempotency.ts'
import { listReasons } from '../refunds/reasons.ts'
import { previewRefund, requestRefund } from '../refunds/request.ts'
import { StaleVersionError } from '../refunds/request-rules.ts'
import type { ConsoleContext, FormFields } from './env.ts'
import { open, seal } from './kept.ts'
import { type Asked, type Done, definePage, InvalidFieldsError, type Mount } from './page.ts'
import { nameAnchor, storyPath } from './paths.ts'
import { listUsualReasons } from './reasons.tsx'
import {
  Checked,
  listSent,
  RefundFormCard,
  RefundsSoFar,
  renderCheck,
  Shown,
  toRequest,
} from './refund-check.tsx'
import { explainRefundRefusal, parseValues, readValues } from './refund-fields.ts'
import { type RefundSubject, readPayment, readSurplus } from './refund-targets.tsx'
import { keepTexts, t, useKept, usePerson } from './view.ts'

export const refundFormRoutes: readonly Mount[] = [
  defineForm('/console/payments/:merchant/:id/refund', readPayment),
  defineForm('/console/transactions/:merchant/:id/surplus', readSurplus),
]

type Asking = Asked<RefundSubject>

/** Defines a form in three steps: the form, a check of what it would do, and its confirmation. */
function defineForm(path: string, read: typeof readPayment): Mount {
  const load = (ctx: ConsoleContext, c: Asking['c']) => {
    const { merchant = '', id = '' } = c.req.param()
    return read(ctx, c.get('access'), merchant, id)
  }
  return definePage<RefundSubject>({
    path,
    scope: 'refunds:write',
    load,
    async show(ctx, c, subject) {
      const token = c.req.query('check') ?? useKept(subject.path).fields.check
      const checked = openCheck(ctx, subject, token)
      if (token && checked) {
        const body = await renderCheck(ctx, c.get('access'), subject, checked, token)
        return { title: t('refundForm.previewTitle'), body }
      }
      const reasons = await offerReasons(ctx, subject)
      const end = token && (await findEnd(ctx, subject, token))
      return { title: subject.title, body: <FormBody {...{ subject, reasons, end }} /> }
    },
    actions: {
      '': {
        // A refusal that is not about the refund has a page of its own.
        explain: () => undefined,
        async run(asked) {
          const { ctx, c, of, fields } = asked
          const { check: token } = fields
          if (token === undefined) c.set('isDryRun', true)
          const checked = token === undefined ? undefined : await openToConfirm(ctx, of, token)
          try {
            return checked ? await confirm(asked, checked) : await check(asked)
          } catch (error) {
            const isRefused = error instanceof StaleVersionError || error instanceof DomainError
            if (!isRefused) throw error
            // The refusal is explained by the present state, beside its field or above the form.
            throw explain(error, await load(ctx, c), checked ? listSent(checked) : fields)
          }
        },
      },
    },
  })
}

async function offerReasons(ctx: ConsoleContext, { merchantCode }: RefundSubject) {
  const own = await listReasons(ctx, merchantCode)
  return own.length > 0 ? own.map((label) => [label, label] as const) : listUsualReasons()
}

const ownerOf = ({ path }: RefundSubject) => ({ personId: usePerson().id, path })

const openCheck = (ctx: ConsoleContext, subject: RefundSubject, token = '') =>
  open(ctx, ownerOf(subject), token, Checked)

const keyOf = ({ form }: Checked) => `console-${form}`

const refundIn = (subject: RefundSubject, refundId: string) =>
  storyPath(subject, nameAnchor('refund', refundId))

/**
 * Also opens a check that is too old if its form has made a refund: that is repeated, or the check is told that it is
 * of another refund.
 * @throws InvalidFieldsError if it cannot be used any more
 */
async function openToConfirm(
  ctx: ConsoleContext,
  subject: RefundSubject,
  token: string,
): Promise<Checked> {
  const checked = openCheck(ctx, subject, token)
  if (checked) return checked
  const { alert, used } = await findEnd(ctx, subject, token)
  if (used) return used
  throw refuse({}, alert)
}

/** `to` is the refund that the form of the check has made, maybe with another check of it. */
type End = { alert: string; to?: string; used?: Checked }

/** Says what became of a check that cannot be used any more. */
async function findEnd(ctx: ConsoleContext, subject: RefundSubject, token: string): Promise<End> {
  const { target, merchantCode } = subject
  const checked = open(ctx, ownerOf(subject), token, Checked, Number.POSITIVE_INFINITY)
  if (!checked) return { alert: t('refundForm.alerts.unknown') }
  const { replay } = await findTarget(ctx.db.sql, [merchantCode], target, keyOf(checked))
  if (replay === null) return { alert: t('refundForm.alerts.expired') }
  const to = refundIn(subject, replay.refundId)
  return { alert: t('refundForm.alerts.used'), to, used: checked }
}

function FormBody(props: {
  subject: RefundSubject
  reasons: Awaited<ReturnType<typeof offerReasons>>
  end: End | '' | undefined
}) {
  const { subject, reasons, end } = props
  const { obstacle, warnings, version, refunds } = subject
  const { fields } = useKept(subject.path)
  const form = randomBytes(18).toString('base64url')
  // It stays the same form: if the answer to its request was lost, it does not request another refund.
  const { data: again } = Shown.safeParse(fields)
  const hidden = again ?? { form, seen: version, last: refunds[0]?.id ?? '' }
  return (
    <>
      {end && (
        <Notice tone="bad">
          {end.alert} {end.to && <a href={end.to}>{t('refundForm.alerts.openRefund')}</a>}
        </Notice>
      )}
      {[obstacle ?? [], warnings].flat().map((warning) => (
        <Notice tone="warn">{warning}</Notice>
      ))}
      {subject.summary}
      <RefundsSoFar refunds={refunds} last={again ? undefined : fields.last} />
      {obstacle === undefined && <RefundFormCard {...{ subject, reasons, hidden }} />}
    </>
  )
}

const refuse = (fields: FormFields, alert: string) =>
  new InvalidFieldsError({}, { alerts: [alert], fields: readValues(fields) })

async function check({ ctx, access, of: subject, fields }: Asking): Promise<Done> {
  const shown = Shown.safeParse(fields)
  if (!shown.success) throw refuse(fields, t('refundForm.alerts.expired'))
  const values = readValues(fields)
  const reasons = (await offerReasons(ctx, subject)).map(([value]) => value)
  const parsed = parseValues(values, { ...subject, reasons })
  const alerts = [t('refundForm.alerts.corrections')]
  if (!parsed.refund) throw new InvalidFieldsError({ ...parsed.problems }, { alerts })
  const request = toRequest(subject, { ...shown.data, ...parsed.refund })
  const previewed = await previewRefund(ctx, access, [subject.merchantCode], request)
  // The amount that is shown is the one that is sent, also for all that is left. The receiver is part of the refund.
  const { accountName: _, accountNumber: __, swiftCode: ___, ...typed } = values
  const content: z.input<typeof Checked> = {
    ...{ ...shown.data, ...parsed.refund, amount: previewed.amount, typed },
  }
  const token = seal(ctx, ownerOf(subject), content)
  if (token !== undefined) return { to: `${subject.path}?check=${token}` }
  throw new InvalidFieldsError({ reasonText: t('refundForm.problems.reasonLong') }, { alerts })
}

async function confirm({ ctx, access, of: subject }: Asking, checked: Checked): Promise<Done> {
  const { merchantCode } = subject
  const request = toRequest(subject, checked)
  const requested = await requestRefund(ctx, access, [merchantCode], keyOf(checked), request)
  const { refundId, replayed } = requested
  const { name, requestId } = access
  ctx.log.info({ merchantCode, refundId, key: name, requestId, replayed }, 'refund requested')
  const to = refundIn(subject, refundId)
  if (replayed) return { to, notice: 'refundRepeated' }
  const { needsApproval } = requested.stored.refund
  return { to, notice: needsApproval ? 'refundAwaiting' : 'refundRequested' }
}

/** @throws the error if it is not about the refund */
function explain(error: Error, subject: RefundSubject, sent: FormFields): InvalidFieldsError {
  const values = readValues(sent)
  if (error instanceof StaleVersionError) {
    // A new form, whose list marks the refunds after the last known one as new.
    const fields = { ...values, last: sent.last ?? '' }
    return new InvalidFieldsError({}, { alerts: [t('refundForm.alerts.stale')], fields })
  }
  const explained = error instanceof DomainError && explainRefundRefusal(error, subject, values)
  if (!explained) throw error
  const { problems, alert } = explained
  const { refundId } = error.extra
  const path = refundId && refundIn(subject, refundId)
  return new InvalidFieldsError(problems ?? {}, {
    code: error.code,
    alerts: keepTexts([problems && t('refundForm.alerts.corrections'), alert]),
    links: path ? [{ text: t('refundForm.alerts.openRefund'), href: path }] : [],
    // A key that belongs to one refund cannot request another.
    fields: error.code === 'idempotency_key_reused' ? values : { ...sent },
  })
}
