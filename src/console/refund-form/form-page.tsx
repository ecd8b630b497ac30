import { Card, DataTable, Notice } from '../../platform/html/components.tsx'
import type { RefundView } from '../../refunds/view.ts'
import { Time } from '../cells.tsx'
import type { ConsoleRequest } from '../env.ts'
import { formatMoney } from '../format-money.ts'
import { Form } from '../forms/form.tsx'
import { renderConsolePage } from '../layout.tsx'
import { nameAnchor, storyPath } from '../paths.ts'
import { RefundStatus } from '../states.tsx'
import { t } from '../view.ts'
import { findFirst, RECEIVER_FIELDS } from './fields.ts'
import type { RefundSubject } from './flow.ts'
import { AmountFields, type FormState, ReasonFields, ReceiverFields } from './form-fields.tsx'

/** Answers with the form, filled in with what the person has typed. */
export function renderForm(c: ConsoleRequest, state: FormState) {
  const { subject, problems = {}, alerts = [], status = 200 } = state
  const { obstacle, warnings } = subject
  const above =
    findFirst(problems) === undefined ? alerts : [t('refundForm.alerts.corrections'), ...alerts]
  return renderConsolePage(
    c,
    { title: subject.title, status },
    <>
      {above.map((alert) => (
        <Notice tone="bad">{alert}</Notice>
      ))}
      {[...(obstacle === undefined ? [] : [obstacle]), ...warnings].map((warning) => (
        <Notice tone="warn">{warning}</Notice>
      ))}
      {subject.summary}
      <RefundsSoFar subject={subject} />
      {obstacle === undefined ? <FormCard c={c} state={state} /> : null}
    </>,
  )
}

function RefundsSoFar({ subject }: { subject: RefundSubject }) {
  const { merchantCode, refunds } = subject
  if (refunds.length === 0) return null
  const row = (refund: RefundView) => [
    formatMoney(refund.amount, refund.currency),
    <RefundStatus status={refund.status} />,
    refund.requestedBy,
    <Time iso={refund.requestedAt} />,
    <RefundLink merchantCode={merchantCode} refund={refund} text={t('refundForm.refunds.open')} />,
  ]
  return (
    <Card title={t('refundForm.refunds.card')}>
      <DataTable
        caption={t('refundForm.refunds.caption')}
        columns={[
          { title: t('field.amount'), kind: 'number' },
          { title: t('field.status') },
          { title: t('field.requestedBy') },
          { title: t('field.requestedAt') },
          { title: t('refundForm.refunds.story') },
        ]}
        rows={refunds.map(row)}
      />
    </Card>
  )
}

/** A link to what the story of a transaction shows of a refund. */
export function RefundLink(props: {
  merchantCode: string
  refund: Pick<RefundView, 'id' | 'transactionId'>
  text: string
}) {
  const { merchantCode, refund, text } = props
  const { id, transactionId } = refund
  return <a href={storyPath({ merchantCode, transactionId }, nameAnchor('refund', id))}>{text}</a>
}

function FormCard({ c, state }: { c: ConsoleRequest; state: FormState }) {
  const { subject, ticket, problems = {} } = state
  const { needsReceiver } = subject
  const isAsked = needsReceiver || RECEIVER_FIELDS.some((name) => problems[name] !== undefined)
  return (
    <Card title={t('field.refund')}>
      <Form c={c} action={subject.path} stacked fields={{ ticket }}>
        <AmountFields state={state} />
        {isAsked ? <ReceiverFields state={state} /> : null}
        <ReasonFields state={state} />
        <p class="hint">{t('refundForm.form.nothingIsSent')}</p>
        <div class="row">
          <button type="submit" name="step" value="preview">
            {t('refundForm.form.preview')}
          </button>
          <a href={storyPath(subject)}>{t('refundForm.form.cancel')}</a>
        </div>
      </Form>
    </Card>
  )
}
