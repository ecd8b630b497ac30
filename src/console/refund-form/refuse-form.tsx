import { type DomainError, REFUSALS } from '../../errors.ts'
import { compareAmounts } from '../../money.ts'
import { formatTime } from '../cells.tsx'
import { formatMoney } from '../format-money.ts'
import { t } from '../view.ts'
import { explainRefusal } from './explain-refusal.ts'
import type { RefundValues } from './fields.ts'
import { RefundLink, renderForm } from './form-page.tsx'
import { issueTicket, type OpenedForm, openForm } from './open-form.ts'
import type { Ticket } from './ticket.ts'

/** A form as it was sent, with its signed ticket. */
export type SentForm = { opened: OpenedForm; values: RefundValues; token: string; ticket: Ticket }

/** Answers a form that was shown before something changed: with what changed, and a new form, filled in. */
export async function refuseStale({ opened, values, ticket }: SentForm) {
  const now = await openForm(opened.ctx, opened.flow, opened.c)
  const { subject, reasons } = now
  const alerts = [t('refundForm.alerts.stale'), ...describeChanges(ticket, now)]
  return renderForm(now.c, {
    subject,
    reasons,
    ticket: issueTicket(now),
    values,
    alerts,
    status: 409,
  })
}

function describeChanges({ left, lastRefundId }: Ticket, { subject }: OpenedForm) {
  const { merchantCode, currency, refunds } = subject
  const show = (amount: string) => formatMoney(amount, currency)
  const known = refunds.findIndex(({ id }) => id === lastRefundId)
  const added = known === -1 ? refunds : refunds.slice(0, known)
  const changes = added.map((refund) => (
    <>
      {t('refundForm.alerts.newRefund', {
        amount: show(refund.amount),
        by: refund.requestedBy,
        at: formatTime(refund.requestedAt),
        status: t(`states.refund.${refund.status}`),
      })}{' '}
      <RefundLink
        merchantCode={merchantCode}
        refund={refund}
        text={t('refundForm.alerts.openRefund')}
      />
    </>
  ))
  if (compareAmounts(left, subject.left) !== 0) {
    return [
      t('refundForm.alerts.leftChanged', { before: show(left), now: show(subject.left) }),
      ...changes,
    ]
  }
  return changes.length > 0 ? changes : [t('refundForm.alerts.otherChange')]
}

/**
 * Answers a form whose refund was refused: filled in, with the reason beside its field or above the form.
 * @throws the refusal, if it is not about the refund
 */
export async function refuseForm({ opened, values, token }: SentForm, error: DomainError) {
  const now = await openForm(opened.ctx, opened.flow, opened.c)
  const { c, subject, reasons } = now
  const explained = explainRefusal(error, { subject, values })
  if (!explained) throw error
  const { refundId } = error.extra
  const alert =
    refundId === undefined ? (
      explained.alert
    ) : (
      <>
        {explained.alert}{' '}
        <RefundLink
          merchantCode={subject.merchantCode}
          refund={{ id: refundId, transactionId: subject.transactionId }}
          text={t('refundForm.alerts.openRefund')}
        />
      </>
    )
  c.set('refusal', error.code)
  return renderForm(c, {
    subject,
    reasons,
    values,
    problems: explained.problems,
    alerts: alert === undefined ? [] : [alert],
    // A key that belongs to a refund can make no other one.
    ticket: error.code === 'idempotency_key_reused' ? issueTicket(now) : token,
    status: REFUSALS[error.code].status,
  })
}
