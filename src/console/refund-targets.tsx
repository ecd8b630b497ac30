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
import { cell, type ListColumn, link, money, Rows } from './cells.tsx'
import type { ConsoleContext } from './env.ts'
import { refundPath, storyPath, surplusPath } from './paths.ts'
import { formatMoney, t } from './view.ts'
import { describeMethod, describeStatus } from './words.ts'

/** What a form refunds, as it is now. Amounts are decimal strings. */
export type RefundSubject = {
  merchantCode: string
  transactionId: string
  /** The payment that is refunded; undefined when nothing can be. */
  paymentId: string | undefined
  /** The path of its form. */
  path: string
  title: string
  currency: string | null
  /** What can be refunded in one refund. */
  left: string
  needsReceiver: boolean
  /** For `expectedVersion`; no newer than everything else here. */
  version: string
  /** The newest ones, newest first. */
  refunds: readonly RefundView[]
  /** Why nothing can be refunded; undefined when something can. */
  obstacle: string | undefined
  /** What may keep a refund from being sent. */
  warnings: readonly string[]
  /** What is refunded, as a part of the page. */
  summary: Child
}

/** One of the two kinds of refund that people request. */
export type RefundFlow = {
  /**
   * Reads what the path names.
   * @throws DomainError when the person may not see it
   */
  read(ctx: ConsoleContext, access: Access, path: PathParams): Promise<RefundSubject>
  /** What the request names. */
  target(subject: RefundSubject): { paymentId: string } | { transactionId: string }
}

/** The account, and the id of the payment or the transaction. */
export type PathParams = { merchant: string; id: string }

type PaymentView = ReturnType<typeof showPayment>

/** Refunds of one payment. */
export const PAYMENT_FLOW: RefundFlow = {
  read: readPayment,
  target: ({ paymentId = '' }) => ({ paymentId }),
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
  const listed = payments.find(({ paymentId }) => paymentId === id)
  if (!listed) throw new DomainError('unavailable', `Payment ${id} is moving; open it again`)
  const payment = showPayment(listed, transaction)
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
    obstacle: findPaymentObstacle(payment),
    warnings: warnOfHolds(ctx, payment.hold, found.accountHold),
    summary: <PaymentSummary payment={payment} />,
  }
}

function findPaymentObstacle(payment: PaymentView): string | undefined {
  if (payment.missing) return t('refundForm.alerts.notRefundable.missing')
  if (payment.unreadable) return t('refundForm.alerts.notRefundable.unreadable')
  if (payment.status !== 'SUCCESS')
    return t('refundForm.alerts.notRefundable.status', { status: describeStatus(payment.status) })
  return isPositive(payment.refundableAmount) ? undefined : t('refundForm.alerts.nothingLeft')
}

function PaymentSummary({ payment }: { payment: PaymentView }) {
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

/** How many payments of an order are listed; all of them are counted. */
const SHOWN_PAYMENTS = 50

/** Refunds of what was paid beyond one success of an order. */
export const SURPLUS_FLOW: RefundFlow = {
  read: readSurplus,
  target: ({ transactionId }) => ({ transactionId }),
}

async function readSurplus(
  ctx: ConsoleContext,
  access: Access,
  { merchant: merchantCode, id: transactionId }: PathParams,
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
  const accountHold = await readAccountHold(ctx.sql, merchantCode)
  return {
    ...key,
    paymentId,
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
  if (chosen) return undefined
  return payments.some(({ own }) => own)
    ? t('refundForm.alerts.noSurplus')
    : t('refundForm.alerts.noSuccess')
}

function SurplusSummary(props: { transaction: ShownTransaction; counted: SurplusDescription }) {
  const { transaction, counted } = props
  const { merchantCode, orderId, currency } = transaction
  const { success, surplus, chosen } = counted
  const show = (amount: string) => formatMoney(amount, currency)
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
          ...(chosen
            ? [
                [
                  t('refundForm.surplus.refunds'),
                  <Identifier>{chosen.payment.paymentId}</Identifier>,
                ] as const,
              ]
            : []),
        ]}
      />
      {isPositive(rest) ? <p>{t('refundForm.surplus.rest', { amount: show(rest) })}</p> : null}
    </Card>
  )
}

type Counted = SurplusDescription['payments'][number]

function listColumns(
  merchantCode: string,
  currency: string | null,
): readonly ListColumn<Counted>[] {
  return [
    link(
      'transaction',
      ({ transactionId }) => transactionId,
      ({ transactionId }) => storyPath({ merchantCode, transactionId }),
    ),
    cell(
      'payment',
      ({ paymentId }) => paymentId,
      ({ paymentId }) => <Identifier>{paymentId}</Identifier>,
    ),
    money('paid', ({ amount }) => [amount, currency]),
    money('left', ({ refundable }) => [refundable, currency]),
  ]
}

/** How many refunds a form lists. */
const SHOWN_REFUNDS = 20

/** Lists the newest refunds, newest first. */
async function listNewestRefunds(ctx: ConsoleContext, filter: RefundFilter): Promise<RefundView[]> {
  const { rows } = await listRefunds(ctx, filter, SHOWN_REFUNDS, undefined)
  return rows.slice(0, SHOWN_REFUNDS).map((one) => showRefund(ctx.encryption, one))
}

/** Explains what would keep a refund from being requested, although something is left. */
function warnOfHolds(
  { config }: ConsoleContext,
  hold: StoredHold,
  accountHold: StoredHold,
): string[] {
  return [
    ...(hold ? [t('refundForm.alerts.held', { reason: hold.reason })] : []),
    ...(accountHold ? [t('refundForm.alerts.accountHeld', { reason: accountHold.reason })] : []),
    ...(config.REFUNDS_ENABLED ? [] : [t('refundForm.alerts.disabled')]),
  ]
}
