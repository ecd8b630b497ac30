import { isPositive } from '../../money.ts'
import type { StoredHold } from '../../payments/view.ts'
import { Badge, Card, Facts, Identifier } from '../../platform/html/components.tsx'
import type { TransactionView } from '../../transactions/view.ts'
import { Time } from '../cells.tsx'
import { formatMoney } from '../format-money.ts'
import { nameAnchor, refundPath } from '../paths.ts'
import { describeMethod, PaymentStatus } from '../states.tsx'
import { can, t } from '../view.ts'
import { HoldFacts, HoldForm, type MayRelease } from './hold.tsx'

type Payment = TransactionView['payments'][number]
type Props = {
  accountHold: StoredHold
  mayRelease: MayRelease
}

/** The payments of a transaction, each with what a person may do with it. */
export function Payments(props: Props & { payments: readonly Payment[] }) {
  const { payments, ...rest } = props
  return (
    <Card title={t('frame.pages.payments')}>
      {payments.length === 0 ? <p>{t('story.sections.noPayments')}</p> : null}
      {payments.map((payment) => (
        <PaymentItem payment={payment} {...rest} />
      ))}
    </Card>
  )
}

function PaymentItem(props: Props & { payment: Payment }) {
  const { id, status, amount, currency, paymentMethod, hold, ...payment } = props.payment
  return (
    <article id={nameAnchor('payment', id)}>
      <h3>
        {t('field.payment')} <Identifier>{id}</Identifier> <PaymentStatus status={status} />{' '}
        {hold === null ? null : <Badge tone="warn">{t('states.held')}</Badge>}
      </h3>
      {payment.missing ? <p class="bad">{t('story.paymentFacts.missing')}</p> : null}
      {payment.unreadable ? <p class="bad">{t('story.paymentFacts.unreadable')}</p> : null}
      <Facts
        rows={[
          [t('field.amount'), formatMoney(amount, currency)],
          [t('field.method'), describeMethod(paymentMethod)],
          [t('field.refunded'), formatMoney(payment.refundedAmount, currency)],
          [t('field.left'), formatMoney(payment.refundableAmount, currency)],
          [t('field.firstSeen'), <Time iso={payment.firstSeenAt} />],
          ...(hold === null ? [] : [[t('field.hold'), <HoldFacts hold={hold} />] as const]),
        ]}
      />
      <PaymentActions {...props} />
    </article>
  )
}

function PaymentActions(props: Props & { payment: Payment }) {
  const { payment, accountHold, mayRelease } = props
  const { id, merchantCode, hold, refundableAmount } = payment
  const isFree = hold === null && accountHold === null
  return (
    <div class="row">
      {isFree && isPositive(refundableAmount) && can('refunds:write') ? (
        <a class="button" href={refundPath(merchantCode, id)}>
          {t('story.actions.refund')}
        </a>
      ) : null}
      {can('ops') ? (
        <HoldForm
          {...{ merchantCode, id }}
          target="payment"
          isHeld={hold !== null}
          mayRelease={mayRelease('payment', id)}
        />
      ) : null}
    </div>
  )
}
