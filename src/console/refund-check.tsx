import type { Child } from 'hono/jsx'
import { z } from 'zod'
import { narrowMerchants } from '../access/authenticate.ts'
import type { Access } from '../access/types.ts'
import { DomainError } from '../errors.ts'
import { Card, Facts, Notice } from '../platform/html/components.tsx'
import { findReceiverHints, Receiver } from '../refunds/receiver.ts'
import { type PreviewedRefund, previewRefund } from '../refunds/request.ts'
import { StaleVersionError } from '../refunds/request-rules.ts'
import type { ConsoleContext } from './context.ts'
import type { FormFields } from './env.ts'
import { formatMoney } from './format-money.ts'
import { Form } from './forms.tsx'
import { pageWith } from './kept.ts'
import { storyPath } from './paths.ts'
import type { RefundFlow, RefundSubject } from './refund-targets.tsx'
import { t, usePerson } from './view.ts'

/** A form and what it refunds, as it is now. */
export type OpenedForm = {
  flow: RefundFlow
  subject: RefundSubject
  /** The reasons that may be chosen: as they are stored, and in words. */
  reasons: readonly (readonly [value: string, text: string])[]
}

/** What a form was shown for. It travels with the form, which makes at most one refund, however often it is sent. */
export const Shown = z.object({
  /** Made when the form is shown: the idempotency key of its refund. */
  form: z.string().regex(/^[\w-]{24}$/),
  /** The version for `expectedVersion`. */
  seen: z.string(),
  /** What was left to refund (decimal string), and the newest refund: they show what has changed since. */
  left: z.string(),
  last: z.string(),
})

export type Shown = z.infer<typeof Shown>

/** A refund that was checked: sealed, it is what the person confirms. */
export const Checked = Shown.extend({
  amount: z.string(),
  receiver: Receiver.optional(),
  reason: z.string(),
  typed: z.record(z.string(), z.string()),
})

export type Checked = z.infer<typeof Checked>

/** The fields of the form that was checked. */
export const listSent = (checked: Checked): FormFields => ({
  ...{ ...checked.typed, ...checked.receiver, ...Shown.parse(checked) },
})

export const merchantsOf = (access: Access, { merchantCode }: RefundSubject) =>
  narrowMerchants(access, merchantCode)

/** What would be sent, to be confirmed. A page of its own, so that it works without a script. */
export async function renderCheck(
  ctx: ConsoleContext,
  access: Access,
  { flow, subject }: OpenedForm,
  checked: Checked,
  token: string,
): Promise<Child> {
  const { path } = subject
  const { amount, receiver, seen: expectedVersion, reason } = checked
  const asked = { amount, receiver, reason, expectedVersion, ...flow.target(subject) }
  const merchants = merchantsOf(access, subject)
  const previewed = await previewRefund(ctx, access, merchants, asked).catch((error: unknown) => {
    if (error instanceof DomainError || error instanceof StaleVersionError) return undefined
    throw error
  })
  const kept = { action: path, fields: listSent(checked) }
  const change = pageWith(ctx, usePerson().id, path, kept)
  return (
    <>
      {previewed ? null : <Notice tone="warn">{t('refundForm.preview.changedSince')}</Notice>}
      {listHints(receiver).map((hint) => (
        <Notice tone="warn">{hint}</Notice>
      ))}
      <Card title={t('refundForm.preview.card')}>
        <p>
          <strong>{describe(subject, checked)}</strong>
        </p>
        <Facts rows={listFacts(subject, checked, previewed)} />
        <Form action={path} fields={{ check: token }}>
          <div class="row">
            <button type="submit">{t('refundForm.preview.confirm')}</button>
            <a class="button quiet" href={change}>
              {t('refundForm.preview.change')}
            </a>
            <a href={storyPath(subject)}>{t('refundForm.form.cancel')}</a>
          </div>
        </Form>
      </Card>
    </>
  )
}

/** In words, with the whole account number: it is compared with what the customer wrote. */
function describe({ currency }: RefundSubject, { amount, receiver }: Checked): string {
  const {
    accountName: name = '',
    accountNumber: number = '',
    swiftCode: bank = '',
  } = receiver ?? {}
  const to = receiver
    ? t('refundForm.preview.toAccount', { name, number, bank })
    : t('refundForm.preview.backToPayer')
  return t('refundForm.preview.sentence', { amount: formatMoney(amount, currency), to })
}

function listFacts(
  { currency, paymentId }: RefundSubject,
  { amount, receiver, reason }: Checked,
  previewed: (PreviewedRefund & { paymentId?: string }) | undefined,
): (readonly [string, string])[] {
  const show = (one: string) => formatMoney(one, currency)
  const {
    accountName: name = '',
    accountNumber: number = '',
    swiftCode: code = '',
  } = receiver ?? {}
  const approval = previewed?.needsApproval
    ? t('refundForm.preview.needsApproval')
    : t('refundForm.preview.needsNoApproval')
  return [
    [t('field.amount'), show(amount)],
    [t('refundForm.preview.payment'), previewed?.paymentId ?? paymentId ?? ''],
    [
      t('field.receiver'),
      receiver ? t('refunds.receiver', { name, number, code }) : t('refundForm.preview.toPayer'),
    ],
    ...(previewed
      ? [
          [t('refundForm.preview.after'), show(previewed.refundableAfter)] as const,
          [t('refundForm.preview.approval'), approval] as const,
        ]
      : []),
    [t('field.reason'), reason],
  ]
}

function listHints(receiver: Receiver | undefined): string[] {
  const hinted = new Set(findReceiverHints(receiver).map(({ path }) => path))
  return (['accountNumber', 'swiftCode'] as const)
    .filter((name) => hinted.has(`receiver.${name}`))
    .map((name) => t(`refundForm.preview.hints.${name}`))
}
