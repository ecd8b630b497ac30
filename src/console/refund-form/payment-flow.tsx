import { narrowMerchants } from '../../access/authenticate.ts'
import type { Access } from '../../access/types.ts'
import { DomainError } from '../../errors.ts'
import { isPositive } from '../../money.ts'
import { findPayment } from '../../payments/find-payments.ts'
import { showPayment } from '../../payments/view.ts'
import { Card, Facts, Identifier } from '../../platform/html/components.tsx'
import { previewRefund, requestRefund } from '../../refunds/request.ts'
import { formatTransactionVersion } from '../../refunds/target.ts'
import { findTransaction } from '../../transactions/find-transaction.ts'
import type { ConsoleContext } from '../context.ts'
import { formatMoney } from '../format-money.ts'
import { refundPath, storyPath } from '../paths.ts'
import { describeMethod, describeStatus } from '../states.tsx'
import { t } from '../view.ts'
import type { PathParams, RefundFlow, RefundSubject } from './flow.ts'
import { listNewestRefunds, warnOfHolds } from './read-parts.ts'

type PaymentView = ReturnType<typeof showPayment>

/** Refunds of one payment. */
export function paymentFlow(ctx: ConsoleContext): RefundFlow {
  const name = (subject: RefundSubject) => subject.paymentId ?? ''
  return {
    route: '/console/payments/:merchant/:id/refund',
    read: (access, path) => readPayment(ctx, access, path),
    preview: (access, subject, asked) =>
      previewRefund(ctx, access, narrowMerchants(access, subject.merchantCode), {
        ...asked,
        paymentId: name(subject),
      }),
    request: (access, subject, key, asked) =>
      requestRefund(ctx, access, narrowMerchants(access, subject.merchantCode), key, {
        ...asked,
        paymentId: name(subject),
      }),
  }
}

async function readPayment(
  ctx: ConsoleContext,
  access: Access,
  { merchant: merchantCode, id }: PathParams,
): Promise<RefundSubject> {
  const merchants = narrowMerchants(access, merchantCode)
  const found = await findPayment(ctx, merchants, id)
  const { transactionId } = found.payment
  // Its version, its payments and what is left of them are of one moment.
  const { transaction, payments } = await findTransaction(ctx, merchants, transactionId)
  const listed = payments.find(({ payment }) => payment.paymentId === id)
  if (!listed) throw new DomainError('unavailable', `Payment ${id} is moving; open it again`)
  const payment = showPayment(listed.payment, transaction, listed.refundable)
  const refunds = await listNewestRefunds(ctx, { merchants, paymentId: id })
  return {
    merchantCode,
    transactionId,
    paymentId: id,
    path: refundPath(merchantCode, id),
    title: t('refundForm.paymentTitle', { paymentId: id }),
    currency: payment.currency,
    left: payment.refundableAmount,
    needsReceiver: payment.paymentMethod === 'QR',
    version: formatTransactionVersion(transaction),
    refunds,
    obstacle: findObstacle(payment),
    warnings: warnOfHolds(ctx, payment.hold, found.accountHold),
    summary: <Summary payment={payment} />,
  }
}

function findObstacle(payment: PaymentView): string | undefined {
  if (payment.missing) return t('refundForm.alerts.notRefundable.missing')
  if (payment.unreadable) return t('refundForm.alerts.notRefundable.unreadable')
  if (payment.status !== 'SUCCESS')
    return t('refundForm.alerts.notRefundable.status', { status: describeStatus(payment.status) })
  return isPositive(payment.refundableAmount) ? undefined : t('refundForm.alerts.nothingLeft')
}

function Summary({ payment }: { payment: PaymentView }) {
  const { merchantCode, transactionId, currency } = payment
  const show = (amount: string) => formatMoney(amount, currency)
  return (
    <Card title={t('field.payment')}>
      <Facts
        rows={[
          [t('field.payment'), <Identifier>{payment.id}</Identifier>],
          [t('field.order'), payment.orderId ?? t('states.notStated')],
          [t('field.method'), describeMethod(payment.paymentMethod)],
          [t('field.paid'), show(payment.amount)],
          [t('field.refunded'), show(payment.refundedAmount)],
          [t('field.left'), show(payment.refundableAmount)],
        ]}
      />
      <p>
        <a href={storyPath({ merchantCode, transactionId })}>{t('refundForm.payment.story')}</a>
      </p>
    </Card>
  )
}
