import type { Child } from 'hono/jsx'
import { narrowMerchants } from '../access/authenticate.ts'
import type { Access } from '../access/types.ts'
import { readAccountHold } from '../decisions/holds.ts'
import { DomainError } from '../errors.ts'
import { isPositive, subtractAmount } from '../money.ts'
import { findPayment } from '../payments/find-payments.ts'
import { type StoredHold, showPayment } from '../payments/view.ts'
import { Card, Facts, Identifier } from '../platform/html/components.tsx'
import { listRefunds, type RefundFilter } from '../refunds/find.ts'
import { formatTransactionVersion } from '../refunds/request-facts.ts'
import { describeSurplus, type SurplusDescription } from '../refunds/surplus.ts'
import { type RefundView, showRefund } from '../refunds/view.ts'
import { findTransaction } from '../transactions/find-transaction.ts'
import type { ShownTransaction } from '../transactions/types.ts'
import { FieldFacts, id, type ListColumn, link, money, Rows } from './cells.tsx'
import type { ConsoleContext } from './env.ts'
import { refundPath, storyPath, surplusPath } from './paths.ts'
import { formatMoney, keepTexts, t } from './view.ts'
import { describeMethod, nameKnown } from './words.ts'

/** What a form refunds. Amounts are decimal strings. */
export type RefundSubject = {
  merchantCode: string
  transactionId: string
  paymentId: string | undefined
  target: { paymentId: string } | { transactionId: string }
  path: string
  title: string
  currency: string | null
  left: string
  needsReceiver: boolean
  /** For `expectedVersion`; no newer than everything else here. */
  version: string
  refunds: readonly RefundView[]
  obstacle: string | undefined
  warnings: readonly string[]
  summary: Child
}

type PaymentView = ReturnType<typeof showPayment>

/** @throws DomainError when the person may not see it */
export async function readPayment(
  ctx: ConsoleContext,
  access: Access,
  merchantCode: string,
  id: string,
): Promise<RefundSubject> {
  const merchants = narrowMerchants(access, merchantCode)
  const found = await findPayment(ctx, merchants, id)
  const { transactionId } = found.payment
  // The version, the payments and what is left of them have to be of the same moment.
  const { transaction, payments } = await findTransaction(ctx, merchants, transactionId)
  const listed = payments.find(({ paymentId }) => paymentId === id)
  if (!listed) throw new DomainError('unavailable', `Payment ${id} is moving; open it again`)
  const payment = showPayment(listed, transaction)
  const refunds = await listNewestRefunds(ctx, { merchants, paymentId: id })
  return {
    merchantCode,
    transactionId,
    paymentId: id,
    target: { paymentId: id },
    path: refundPath(merchantCode, id),
    title: t('refundForm.paymentTitle', { paymentId: id }),
    currency: payment.currency,
    left: payment.refundableAmount,
    needsReceiver: payment.paymentMethod === 'QR',
    version: formatTransactionVersion(transaction),
    refunds,
    obstacle: findPaymentObstacle(payment),
    warnings: warnOfHolds(ctx, payment.hold, found.accountHold),
    summary: <PaymentSummary payment={payment} />,
  }
}

function findPaymentObstacle(payment: PaymentView): string | undefined {
  if (payment.missing) return t('refundForm.alerts.notRefundable.missing')
  if (payment.unreadable) return t('refundForm.alerts.notRefundable.unreadable')
  if (payment.status !== 'SUCCESS')
    return t('refundForm.alerts.notRefundable.status', {
      status: nameKnown('states.payment', payment.status),
    })
  return isPositive(payment.refundableAmount) ? undefined : t('refundForm.alerts.nothingLeft')
}

function PaymentSummary({ payment }: { payment: PaymentView }) {
  const { merchantCode, transactionId, currency } = payment
  const show = (amount: string) => formatMoney(amount, currency)
  return (
    <Card title={t('field.payment')}>
      <FieldFacts
        of={{
          payment: <Identifier>{payment.id}</Identifier>,
          order: payment.orderId ?? t('states.notStated'),
          paymentMethod: describeMethod(payment.paymentMethod),
          paid: show(payment.amount),
          refunded: show(payment.refundedAmount),
          left: show(payment.refundableAmount),
        }}
      />
      <p>
        <a href={storyPath({ merchantCode, transactionId })}>{t('refundForm.payment.story')}</a>
      </p>
    </Card>
  )
}

const SHOWN_PAYMENTS = 50

/** @throws DomainError when the person may not see it */
export async function readSurplus(
  ctx: ConsoleContext,
  access: Access,
  merchantCode: string,
  transactionId: string,
): Promise<RefundSubject> {
  const merchants = narrowMerchants(access, merchantCode)
  const { transaction, payments } = await findTransaction(ctx, merchants, transactionId)
  const key = { merchantCode, transactionId }
  const counted = await describeSurplus(ctx, key)
  const { orderId, currency } = transaction
  const ofOrder = orderId === null ? { transactionId } : { orderId }
  const refunds = await listNewestRefunds(ctx, { merchants, ...ofOrder })
  const paymentId = counted.chosen?.payment.paymentId
  const chosen = payments.find((one) => one.paymentId === paymentId)
  const accountHold = await readAccountHold(ctx.db.sql, merchantCode)
  return {
    ...key,
    paymentId,
    target: { transactionId },
    path: surplusPath(key),
    title: t('refundForm.surplusTitle', { transactionId }),
    currency,
    left: counted.chosen?.amount ?? '0',
    needsReceiver: chosen?.paymentMethod === 'QR',
    version: counted.version,
    refunds,
    obstacle: findSurplusObstacle(counted),
    warnings: warnOfHolds(ctx, chosen?.hold ?? null, accountHold),
    summary: <SurplusSummary transaction={transaction} counted={counted} />,
  }
}

function findSurplusObstacle({ payments, chosen }: SurplusDescription): string | undefined {
  const hasOwn = payments.some(({ own }) => own)
  return chosen ? undefined : t(`refundForm.alerts.${hasOwn ? 'noSurplus' : 'noSuccess'}`)
}

function SurplusSummary(props: { transaction: ShownTransaction; counted: SurplusDescription }) {
  const { transaction, counted } = props
  const { merchantCode, orderId, currency } = transaction
  const { success, surplus, chosen } = counted
  const show = (amount: string) => formatMoney(amount, currency)
  const name = ({ payment }: NonNullable<typeof chosen>) => (
    <Identifier>{payment.paymentId}</Identifier>
  )
  const more = counted.payments.length - SHOWN_PAYMENTS
  const rest = chosen ? subtractAmount(surplus, chosen.amount) : '0'
  return (
    <Card title={t('refundForm.surplus.card')}>
      <Rows
        caption={
          orderId === null
            ? t('refundForm.surplus.counted')
            : t('refundForm.surplus.countedOf', { orderId })
        }
        columns={listColumns(merchantCode, currency)}
        rows={counted.payments.slice(0, SHOWN_PAYMENTS)}
      />
      {more > 0 ? <p>{t('refundForm.surplus.more', { payments: more })}</p> : null}
      <Facts
        rows={[
          [t('refundForm.surplus.success'), show(success)],
          [t('refundForm.surplus.surplus'), show(surplus)],
          ...(chosen ? [[t('refundForm.surplus.refunds'), name(chosen)] as const] : []),
        ]}
      />
      {isPositive(rest) ? <p>{t('refundForm.surplus.rest', { amount: show(rest) })}</p> : null}
    </Card>
  )
}

type Counted = SurplusDescription['payments'][number]

function listColumns(merchantCode: string, currency: string | null): ListColumn<Counted>[] {
  return [
    link('transaction', ({ transactionId }) => [
      transactionId,
      storyPath({ merchantCode, transactionId }),
    ]),
    id('payment', ({ paymentId }) => paymentId),
    money('paid', ({ amount }) => [amount, currency]),
    money('left', ({ refundable }) => [refundable, currency]),
  ]
}

const SHOWN_REFUNDS = 20

async function listNewestRefunds(ctx: ConsoleContext, filter: RefundFilter): Promise<RefundView[]> {
  const { rows } = await listRefunds(ctx, filter, SHOWN_REFUNDS, undefined)
  return rows.slice(0, SHOWN_REFUNDS).map((one) => showRefund(ctx.encryption, one))
}

/** Explains what keeps a refund from being requested although something is left. */
function warnOfHolds({ config }: ConsoleContext, hold: StoredHold, accountHold: StoredHold) {
  return keepTexts([
    hold && t('refundForm.alerts.held', { reason: hold.reason }),
    accountHold && t('refundForm.alerts.accountHeld', { reason: accountHold.reason }),
    !config.REFUNDS_ENABLED && t('refundForm.alerts.disabled'),
  ])
}
