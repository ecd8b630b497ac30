import { randomBytes } from 'node:crypto'
import type { z } from 'zod'
import type { Access } from '../access/types.ts'
import { DomainError } from '../errors.ts'
import { Notice } from '../platform/html/components.tsx'
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
  merchantsOf,
  type OpenedForm,
  RefundFormCard,
  RefundsSoFar,
  renderCheck,
  Shown,
} from './refund-check.tsx'
import { explainRefundRefusal, parseValues, readValues } from './refund-fields.ts'
import { PAYMENT, type RefundFlow, type RefundSubject, SURPLUS } from './refund-targets.tsx'
import { t, useKept, usePerson } from './view.ts'

export const refundFormRoutes: readonly Mount[] = [
  defineForm('/console/payments/:merchant/:id/refund', PAYMENT),
  defineForm('/console/transactions/:merchant/:id/surplus', SURPLUS),
]

/** Defines a form in three steps: the form, a check of what it would do, and its confirmation. */
function defineForm(path: string, flow: RefundFlow): Mount {
  return definePage<OpenedForm>({
    path,
    scope: 'refunds:write',
    load: (ctx, c) => openForm(ctx, flow, c.get('access'), c.req.param()),
    async show(ctx, c, opened) {
      const { subject } = opened
      const token = c.req.query('check') ?? useKept(subject.path).fields.check
      const checked = token === undefined ? undefined : openCheck(ctx, subject, token)
      if (token !== undefined && checked) {
        const title = t('refundForm.previewTitle')
        return { title, body: await renderCheck(ctx, c.get('access'), opened, checked, token) }
      }
      return { title: subject.title, body: <FormBody opened={opened} isExpired={!!token} /> }
    },
    // What is not about the refund has a page of its own.
    actions: { '': { run: carryOut, explain: () => undefined } },
  })
}

async function openForm(
  ctx: ConsoleContext,
  flow: RefundFlow,
  access: Access,
  { merchant = '', id = '' }: Record<string, string>,
): Promise<OpenedForm> {
  const subject = await flow.read(ctx, access, merchant, id)
  const own = await listReasons(ctx, subject.merchantCode)
  const reasons = own.length > 0 ? own.map((label) => [label, label] as const) : listUsualReasons()
  return { flow, subject, reasons }
}

const ownerOf = ({ path }: RefundSubject) => ({ personId: usePerson().id, path })

const openCheck = (ctx: ConsoleContext, subject: RefundSubject, token: string) =>
  open(ctx, ownerOf(subject), token, Checked)

function issueForm({ version, refunds }: RefundSubject): Shown {
  const form = randomBytes(18).toString('base64url')
  return { form, seen: version, last: refunds[0]?.id ?? '' }
}

function FormBody({ opened, isExpired }: { opened: OpenedForm; isExpired: boolean }) {
  const { subject, reasons } = opened
  const { obstacle, warnings } = subject
  const { fields, problems } = useKept(subject.path)
  // The same form: a refund that was requested by it without an answer is not requested again.
  const shown = Shown.safeParse(fields).data ?? issueForm(subject)
  const values = readValues({ amountKind: 'all', ...fields })
  return (
    <>
      {isExpired ? <Notice tone="bad">{t('refundForm.alerts.expired')}</Notice> : null}
      {[obstacle ?? [], warnings].flat().map((warning) => (
        <Notice tone="warn">{warning}</Notice>
      ))}
      {subject.summary}
      <RefundsSoFar
        refunds={subject.refunds}
        last={shown.form === fields.form ? undefined : fields.last}
      />
      {obstacle === undefined ? (
        <RefundFormCard {...{ subject, reasons, values, problems, hidden: shown }} />
      ) : null}
    </>
  )
}

/** Checks or confirms a refund. What is refused stands beside its field or above the form, as it is now. */
async function carryOut(asked: Asked<OpenedForm>): Promise<Done> {
  const { ctx, c, access, of, fields } = asked
  if (fields.check === undefined) c.set('isDryRun', true)
  const checked = fields.check === undefined ? undefined : openCheck(ctx, of.subject, fields.check)
  if (fields.check !== undefined && !checked) throw expire({})
  try {
    return checked ? await confirm(asked, checked) : await check(asked)
  } catch (error) {
    if (error instanceof StaleVersionError || error instanceof DomainError) {
      const now = await openForm(ctx, of.flow, access, c.req.param())
      throw explain(error, now.subject, checked ? listSent(checked) : fields)
    }
    throw error
  }
}

/** What was typed is filled into a new form. */
const expire = (fields: FormFields) =>
  new InvalidFieldsError(
    {},
    { alerts: [t('refundForm.alerts.expired')], fields: readValues(fields) },
  )

async function check({ ctx, access, of, fields }: Asked<OpenedForm>): Promise<Done> {
  const { flow, subject, reasons } = of
  const shown = Shown.safeParse(fields)
  if (!shown.success) throw expire(fields)
  const values = readValues(fields)
  const asked = { needsReceiver: subject.needsReceiver, reasons: reasons.map(([value]) => value) }
  const parsed = parseValues(values, asked)
  const alerts = [t('refundForm.alerts.corrections')]
  if (!parsed.refund) throw new InvalidFieldsError({ ...parsed.problems }, { alerts })
  const refund = { ...parsed.refund, ...flow.target(subject), expectedVersion: shown.data.seen }
  const previewed = await previewRefund(ctx, access, merchantsOf(access, subject), refund)
  // What is shown is what is sent, also where all that is left was chosen. The receiver is in it as it is sent.
  const { accountName: _, accountNumber: __, swiftCode: ___, ...typed } = values
  const content: z.input<typeof Checked> = {
    ...{ ...shown.data, ...parsed.refund, amount: previewed.amount, typed },
  }
  const token = seal(ctx, ownerOf(subject), content)
  if (token !== undefined) return { to: `${subject.path}?check=${token}` }
  throw new InvalidFieldsError({ reasonText: t('refundForm.problems.reasonLong') }, { alerts })
}

async function confirm({ ctx, access, of }: Asked<OpenedForm>, checked: Checked): Promise<Done> {
  const { flow, subject } = of
  const { form, seen: expectedVersion, amount, receiver, reason } = checked
  const asked = { amount, receiver, reason, expectedVersion, ...flow.target(subject) }
  const merchants = merchantsOf(access, subject)
  const requested = await requestRefund(ctx, access, merchants, `console-${form}`, asked)
  const { refundId, merchantCode, replayed } = requested
  const { name, requestId } = access
  ctx.log.info({ merchantCode, refundId, key: name, requestId, replayed }, 'refund requested')
  const to = storyPath(subject, nameAnchor('refund', refundId))
  if (replayed) return { to, notice: 'refundRepeated' }
  const { needsApproval } = requested.stored.refund
  return { to, notice: needsApproval ? 'refundAwaiting' : 'refundRequested' }
}

/** @throws the refusal, if it is not about the refund */
function explain(error: Error, subject: RefundSubject, sent: FormFields): InvalidFieldsError {
  const values = readValues(sent)
  if (error instanceof StaleVersionError) {
    // A new form; of the refunds that are listed with it, those behind the last one known are new.
    const fields = { ...values, last: sent.last ?? '' }
    return new InvalidFieldsError({}, { alerts: [t('refundForm.alerts.stale')], fields })
  }
  const explained = error instanceof DomainError && explainRefundRefusal(error, subject, values)
  if (!explained) throw error
  const { problems, alert } = explained
  const { refundId } = error.extra
  const path = refundId && storyPath(subject, nameAnchor('refund', refundId))
  return new InvalidFieldsError(problems ?? {}, {
    code: error.code,
    alerts: [
      ...(problems ? [t('refundForm.alerts.corrections')] : []),
      ...(alert === undefined ? [] : [alert]),
    ],
    links: path ? [{ text: t('refundForm.alerts.openRefund'), href: path }] : [],
    // A key that belongs to a refund can make no other one.
    fields: error.code === 'idempotency_key_reused' ? values : { ...sent },
  })
}
