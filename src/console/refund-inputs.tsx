import { Card } from '../platform/html/components.tsx'
import type { RefundView } from '../refunds/view.ts'
import { type ListColumn, link, money, Rows, state, text, time } from './cells.tsx'
import { formatMoney } from './format-money.ts'
import { Choices, Form, Select, TextInput } from './forms.tsx'
import { nameAnchor, storyPath } from './paths.ts'
import {
  type FieldName,
  MAX_REMARK,
  NAMES,
  OTHER_REASON,
  RECEIVER_FIELDS,
  type RefundValues,
} from './refund-fields.ts'
import type { RefundSubject } from './refund-targets.tsx'
import { signRefund } from './states.tsx'
import { t } from './view.ts'

const REFUNDS: readonly ListColumn<RefundView>[] = [
  money('amount', ({ amount, currency }) => [amount, currency]),
  state('status', ({ status }) => signRefund(status)),
  text('requestedBy', ({ requestedBy }) => requestedBy),
  time('requestedAt', ({ requestedAt }) => requestedAt),
  link(
    'refund',
    () => t('refundForm.refunds.open'),
    (refund) => storyPath(refund, nameAnchor('refund', refund.id)),
  ),
]

/** The refunds that were requested before. */
export function RefundsSoFar({ subject: { refunds } }: { subject: RefundSubject }) {
  if (refunds.length === 0) return null
  return (
    <Card title={t('refundForm.refunds.card')}>
      <Rows caption={t('refundForm.refunds.caption')} columns={REFUNDS} rows={refunds} />
    </Card>
  )
}

/** The form: how much, to whom if the gateway needs to know, and why. */
export function RefundFormCard(props: {
  subject: RefundSubject
  reasons: readonly (readonly [value: string, text: string])[]
  values: RefundValues
  problems: Readonly<Record<string, string>>
  hidden: Readonly<Record<string, string>>
}) {
  const { subject, reasons, values, problems, hidden } = props
  const first = NAMES.find((name) => problems[name] !== undefined)
  /** Only the first field with a problem gets the focus. */
  const field = (name: FieldName) => ({
    ...{ name, value: values[name], problem: problems[name], autofocus: name === first },
  })
  const isAsked =
    subject.needsReceiver || RECEIVER_FIELDS.some((name) => problems[name] !== undefined)
  const left = formatMoney(subject.left, subject.currency)
  return (
    <Card title={t('field.refund')}>
      <Form action={subject.path} stacked fields={hidden}>
        <Choices
          {...{ ...field('amountKind'), label: t('refundForm.form.howMuch') }}
          options={[
            { value: 'all', label: t('refundForm.form.all', { left }) },
            { value: 'part', label: t('refundForm.form.part') },
          ]}
        />
        <TextInput
          {...{ ...field('amount'), label: t('refundForm.form.amount'), inputmode: 'decimal' }}
          hint={t('refundForm.form.amountHint')}
        />
        {isAsked ? (
          <fieldset>
            <legend>{t('refundForm.form.receiver')}</legend>
            <p class="hint">{t('refundForm.form.receiverHint')}</p>
            {RECEIVER_FIELDS.map((name) => (
              <TextInput
                {...{ ...field(name), label: t(`refundForm.form.${name}`), maxlength: 140 }}
                hint={name === 'accountName' ? t('refundForm.form.accountNameHint') : undefined}
                {...{ 'aria-required': 'true', spellcheck: false }}
              />
            ))}
          </fieldset>
        ) : null}
        <Select
          {...{ ...field('reason'), label: t('field.reason') }}
          options={[
            { value: '', label: t('refundForm.form.chooseReason') },
            ...reasons.map(([value, label]) => ({ value, label })),
            { value: OTHER_REASON, label: t('refundForm.form.otherReason') },
          ]}
        />
        <TextInput
          {...{ ...field('reasonText'), label: t('field.reasonRemark'), maxlength: MAX_REMARK }}
          hint={t('refundForm.form.reasonTextHint')}
        />
        <p class="hint">{t('refundForm.form.nothingIsSent')}</p>
        <div class="row">
          <button type="submit">{t('refundForm.form.preview')}</button>
          <a href={storyPath(subject)}>{t('refundForm.form.cancel')}</a>
        </div>
      </Form>
    </Card>
  )
}
