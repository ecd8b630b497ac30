import type { Child } from 'hono/jsx'
import { z } from 'zod'
import type { Access } from '../access/types.ts'
import { DomainError } from '../errors.ts'
import { Badge, Card, Notice } from '../platform/html/components.tsx'
import { findReceiverHints, Receiver } from '../refunds/receiver.ts'
import { type PreviewedRefund, previewRefund } from '../refunds/request.ts'
import { StaleVersionError } from '../refunds/request-rules.ts'
import type { RefundView } from '../refunds/view.ts'
import {
  cell,
  FieldFacts,
  type ListColumn,
  link,
  money,
  State,
  TableCard,
  text,
  time,
} from './cells.tsx'
import type { ConsoleContext, FormFields } from './env.ts'
import { Choices, Form, FormCard, Select, TextInput } from './forms.tsx'
import { pageWith } from './kept.ts'
import { nameAnchor, storyPath } from './paths.ts'
import { nameReason } from './reasons.tsx'
import { MAX_REMARK, OTHER_REASON, RECEIVER_FIELDS } from './refund-fields.ts'
import type { RefundSubject } from './refund-targets.tsx'
import { formatMoney, t, useKept, usePerson } from './view.ts'
import { describeReceiver, signRefund } from './words.ts'

/** What a form was shown for. It travels with the form, which makes at most one refund however often it is sent. */
export const Shown = z.object({
  /** Made when the form is shown: the idempotency key of its refund. */
  form: z.string().regex(/^[\w-]{24}$/),
  /** The version for `expectedVersion`. */
  seen: z.string(),
  /** The newest refund, or empty for none. Those after it are new. */
  last: z.string(),
})

export type Shown = z.infer<typeof Shown>

/** A checked refund, which is sealed for the person to confirm. */
export const Checked = Shown.extend({
  amount: z.string(),
  receiver: Receiver.optional(),
  reason: z.string(),
  typed: z.record(z.string(), z.string()),
})

export type Checked = z.infer<typeof Checked>

export const listSent = (checked: Checked): FormFields => ({
  ...{ ...checked.typed, ...checked.receiver, ...Shown.parse(checked) },
})

export function toRequest(
  { target }: RefundSubject,
  of: Pick<Checked, 'seen' | 'reason'> & {
    amount: string | undefined
    receiver?: Receiver | undefined
  },
) {
  const { amount, receiver, reason, seen: expectedVersion } = of
  return { amount, receiver, reason, expectedVersion, ...target }
}

/** Shows what would be sent, to be confirmed. A page of its own works without a script. */
export async function renderCheck(
  ctx: ConsoleContext,
  access: Access,
  subject: RefundSubject,
  checked: Checked,
  token: string,
): Promise<Child> {
  const { path, merchantCode } = subject
  const { receiver } = checked
  const request = toRequest(subject, checked)
  const previewed = await previewRefund(ctx, access, [merchantCode], request).catch(
    (error: unknown) => {
      if (error instanceof DomainError || error instanceof StaleVersionError) return undefined
      throw error
    },
  )
  const kept = { action: path, fields: listSent(checked) }
  const change = pageWith(ctx, usePerson().id, path, kept)
  const hinted = new Set(findReceiverHints(receiver).map((hint) => hint.path))
  const hints = (['accountNumber', 'swiftCode'] as const)
    .filter((name) => hinted.has(`receiver.${name}`))
    .map((name) => t(`refundForm.preview.hints.${name}`))
  return (
    <>
      {!previewed && <Notice tone="warn">{t('refundForm.preview.changedSince')}</Notice>}
      {hints.map((hint) => (
        <Notice tone="warn">{hint}</Notice>
      ))}
      <Card title={t('refundForm.preview.card')}>
        <p>
          <strong>{describe(subject, checked)}</strong>
        </p>
        <CheckedFacts {...{ subject, checked, previewed }} />
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

/** Says what would be sent, with the whole account number, to be compared with what the customer wrote. */
function describe({ currency }: RefundSubject, { amount, receiver: to }: Checked): string {
  const words = to
    ? t('refundForm.preview.toAccount', {
        ...{ name: to.accountName, number: to.accountNumber, bank: to.swiftCode },
      })
    : t('refundForm.preview.backToPayer')
  return t('refundForm.preview.sentence', { amount: formatMoney(amount, currency), to: words })
}

function CheckedFacts(props: {
  subject: RefundSubject
  checked: Checked
  previewed: PreviewedRefund | undefined
}) {
  const { subject, checked, previewed } = props
  const { currency, paymentId } = subject
  const { amount, receiver, reason } = checked
  const approval = previewed?.needsApproval ? 'needsApproval' : 'needsNoApproval'
  return (
    <FieldFacts
      of={{
        amount: formatMoney(amount, currency),
        ofPayment: previewed?.paymentId ?? paymentId ?? '',
        receiver: receiver ? describeReceiver(receiver) : t('refundForm.preview.toPayer'),
        leftAfter: previewed && formatMoney(previewed.refundableAfter, currency),
        secondPerson: previewed && t(`refundForm.preview.${approval}`),
        reason: nameReason(reason),
      }}
    />
  )
}

type Listed = RefundView & { isNew: boolean }

const REFUNDS: readonly ListColumn<Listed>[] = [
  money('amount', ({ amount, currency }) => [amount, currency]),
  cell('status', ({ status, isNew }) => (
    <>
      <State of={signRefund(status)} />{' '}
      {isNew && <Badge tone="warn">{t('refundForm.refunds.new')}</Badge>}
    </>
  )),
  text('requestedBy', ({ requestedBy }) => requestedBy),
  time('requestedAt', ({ requestedAt }) => requestedAt),
  link('refund', (refund) => [
    t('refundForm.refunds.open'),
    storyPath(refund, nameAnchor('refund', refund.id)),
  ]),
]

/** @param props `last` is the newest refund that is known; undefined if all are */
export function RefundsSoFar(props: { refunds: readonly RefundView[]; last: string | undefined }) {
  const { refunds, last } = props
  if (refunds.length === 0) return null
  const known = refunds.findIndex(({ id }) => id === last)
  const isNew = (at: number) => last !== undefined && (known === -1 || at < known)
  const rows = refunds.map((one, at) => ({ ...one, isNew: isNew(at) }))
  return <TableCard {...{ title: t('refundForm.refunds.card'), columns: REFUNDS, rows }} />
}

export function RefundFormCard(props: {
  subject: RefundSubject
  reasons: readonly (readonly [value: string, text: string])[]
  hidden: Readonly<Record<string, string>>
}) {
  const { subject, reasons, hidden } = props
  const { problems } = useKept(subject.path)
  const isAsked =
    subject.needsReceiver || RECEIVER_FIELDS.some((name) => problems[name] !== undefined)
  const left = formatMoney(subject.left, subject.currency)
  const buttons = (
    <div class="row">
      <button type="submit">{t('refundForm.form.preview')}</button>
      <a href={storyPath(subject)}>{t('refundForm.form.cancel')}</a>
    </div>
  )
  return (
    <FormCard
      {...{ title: t('field.refund'), action: subject.path, fields: hidden, buttons }}
      values={{ amountKind: 'all' }}
    >
      {(field) => (
        <>
          <Choices
            {...field('amountKind', t('refundForm.form.howMuch'))}
            options={[
              { value: 'all', label: t('refundForm.form.all', { left }) },
              { value: 'part', label: t('refundForm.form.part') },
            ]}
          />
          <TextInput
            {...field('amount', t('refundForm.form.amount'), t('refundForm.form.amountHint'))}
            inputmode="decimal"
          />
          {isAsked ? (
            <fieldset>
              <legend>{t('refundForm.form.receiver')}</legend>
              <p class="hint">{t('refundForm.form.receiverHint')}</p>
              {RECEIVER_FIELDS.map((name) => (
                <TextInput
                  {...field(name, t(`refundForm.form.${name}`))}
                  hint={name === 'accountName' ? t('refundForm.form.accountNameHint') : undefined}
                  {...{ maxlength: 140, 'aria-required': 'true', spellcheck: false }}
                  data-sensitive="true"
                />
              ))}
            </fieldset>
          ) : null}
          <Select
            {...field('reason', t('field.reason'))}
            options={[
              { value: '', label: t('refundForm.form.chooseReason') },
              ...reasons.map(([value, label]) => ({ value, label })),
              { value: OTHER_REASON, label: t('refundForm.form.otherReason') },
            ]}
          />
          <TextInput
            {...field('reasonText', t('field.reasonRemark'), t('refundForm.form.reasonTextHint'))}
            maxlength={MAX_REMARK}
          />
          <p class="hint">{t('refundForm.form.nothingIsSent')}</p>
        </>
      )}
    </FormCard>
  )
}
