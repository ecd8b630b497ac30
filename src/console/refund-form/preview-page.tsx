import { Card, Facts, Notice } from '../../platform/html/components.tsx'
import { findReceiverHints, maskReceiver, type Receiver } from '../../refunds/receiver.ts'
import type { PreviewedRefund } from '../../refunds/request.ts'
import type { ConsoleRequest } from '../env.ts'
import { formatMoney } from '../format-money.ts'
import { Form } from '../forms/form.tsx'
import { renderConsolePage } from '../layout.tsx'
import { storyPath } from '../paths.ts'
import { t } from '../view.ts'
import type { RefundValues } from './fields.ts'
import type { RefundSubject } from './flow.ts'
import type { PreviewedContent } from './ticket.ts'

export type PreviewState = {
  subject: RefundSubject
  refund: PreviewedContent
  preview: PreviewedRefund & { paymentId?: string }
  values: RefundValues
  /** Hidden fields that travel on: the ticket, and what is shown, signed. */
  hidden: Readonly<Record<string, string>>
  alerts: readonly string[]
}

/** Answers with what would be sent, to be confirmed. A page of its own, so that it works without a script. */
export function renderPreview(c: ConsoleRequest, state: PreviewState) {
  const { subject, refund, preview, values, hidden, alerts } = state
  const ignored = values.amountKind === 'all' && values.amount !== ''
  const hints = [
    ...(ignored ? [t('refundForm.preview.amountIgnored', { amount: values.amount })] : []),
    ...listHints(refund.receiver),
  ]
  return renderConsolePage(
    c,
    { title: t('refundForm.previewTitle') },
    <>
      {alerts.map((alert) => (
        <Notice tone="bad">{alert}</Notice>
      ))}
      {hints.map((hint) => (
        <Notice tone="warn">{hint}</Notice>
      ))}
      <Card title={t('refundForm.preview.card')}>
        <p>
          <strong>{describe(subject, preview.amount, refund.receiver)}</strong>
        </p>
        <Facts rows={listFacts(state)} />
        <Form c={c} action={subject.path} fields={{ ...hidden, ...keep(values, refund) }}>
          <div class="row">
            <button type="submit" name="step" value="confirm">
              {t('refundForm.preview.confirm')}
            </button>
            <button class="quiet" type="submit" name="step" value="edit">
              {t('refundForm.preview.change')}
            </button>
            <a href={storyPath(subject)}>{t('refundForm.form.cancel')}</a>
          </div>
        </Form>
      </Card>
    </>,
  )
}

/** The values of the form travel on, so that it can be changed; a receiver that is not asked for does not. */
function keep(values: RefundValues, { receiver }: PreviewedContent): RefundValues {
  return receiver ? values : { ...values, accountName: '', accountNumber: '', swiftCode: '' }
}

function describe(subject: RefundSubject, amount: string, receiver: Receiver | undefined) {
  const to = receiver
    ? nameReceiver('refundForm.preview.toAccount', receiver)
    : t('refundForm.preview.backToPayer')
  return t('refundForm.preview.sentence', { amount: formatMoney(amount, subject.currency), to })
}

function listFacts({ subject, refund, preview }: PreviewState): [string, string][] {
  const { receiver, reason } = refund
  const show = (amount: string) => formatMoney(amount, subject.currency)
  return [
    [t('field.amount'), show(preview.amount)],
    [t('refundForm.preview.payment'), preview.paymentId ?? subject.paymentId ?? ''],
    [
      t('field.receiver'),
      receiver
        ? nameReceiver('refundForm.preview.receiver', receiver)
        : t('refundForm.preview.toPayer'),
    ],
    [t('refundForm.preview.after'), show(preview.refundableAfter)],
    [t('field.reason'), reason],
    [
      t('refundForm.preview.approval'),
      preview.needsApproval
        ? t('refundForm.preview.needsApproval')
        : t('refundForm.preview.needsNoApproval'),
    ],
  ]
}

/** The account number is masked, as everywhere: its last digits are enough to check it. */
function nameReceiver(
  words: 'refundForm.preview.toAccount' | 'refundForm.preview.receiver',
  receiver: Receiver,
): string {
  const { accountName, accountNumber, swiftCode } = maskReceiver(receiver)
  return t(words, { name: accountName, number: accountNumber, bank: swiftCode })
}

function listHints(receiver: Receiver | undefined): string[] {
  const hinted = new Set(findReceiverHints(receiver).map(({ path }) => path))
  return [
    ...(hinted.has('receiver.accountNumber') ? [t('refundForm.preview.hints.accountNumber')] : []),
    ...(hinted.has('receiver.swiftCode') ? [t('refundForm.preview.hints.swiftCode')] : []),
  ]
}
