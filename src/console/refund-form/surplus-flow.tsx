import { narrowMerchants } from '../../access/authenticate.ts'
import type { Access } from '../../access/types.ts'
import { readAccountHold } from '../../decisions/hold-subject.ts'
import { isPositive, subtractAmount } from '../../money.ts'
import { Card, DataTable, Facts, Identifier } from '../../platform/html/components.tsx'
import { previewRefund, requestRefund } from '../../refunds/request.ts'
import { describeSurplus, type SurplusDescription } from '../../refunds/surplus.ts'
import { findTransaction } from '../../transactions/find-transaction.ts'
import type { ShownTransaction } from '../../transactions/types.ts'
import type { ConsoleContext } from '../context.ts'
import { formatMoney } from '../format-money.ts'
import { storyPath, surplusPath } from '../paths.ts'
import { t } from '../view.ts'
import type { PathParams, RefundFlow, RefundSubject } from './flow.ts'
import { listNewestRefunds, warnOfHolds } from './read-parts.ts'

/** How many payments of an order are listed; all of them are counted. */
const SHOWN_PAYMENTS = 50

/** Refunds of what was paid beyond one success of an order. */
export function surplusFlow(ctx: ConsoleContext): RefundFlow {
  return {
    route: '/console/transactions/:merchant/:id/surplus',
    read: (access, path) => readSurplus(ctx, access, path),
    preview: (access, { merchantCode, transactionId }, asked) =>
      previewRefund(ctx, access, narrowMerchants(access, merchantCode), {
        ...asked,
        transactionId,
      }),
    request: (access, { merchantCode, transactionId }, key, asked) =>
      requestRefund(ctx, access, narrowMerchants(access, merchantCode), key, {
        ...asked,
        transactionId,
      }),
  }
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
  const chosen = payments.find(({ payment }) => payment.paymentId === paymentId)?.payment
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
    obstacle: findObstacle(counted),
    warnings: warnOfHolds(ctx, chosen?.hold ?? null, accountHold),
    summary: <Summary transaction={transaction} counted={counted} />,
  }
}

function findObstacle({ payments, chosen }: SurplusDescription): string | undefined {
  if (chosen) return undefined
  return payments.some(({ own }) => own)
    ? t('refundForm.alerts.noSurplus')
    : t('refundForm.alerts.noSuccess')
}

function Summary(props: { transaction: ShownTransaction; counted: SurplusDescription }) {
  const { transaction, counted } = props
  const { merchantCode, orderId, currency } = transaction
  const { success, surplus, chosen } = counted
  const show = (amount: string) => formatMoney(amount, currency)
  const more = counted.payments.length - SHOWN_PAYMENTS
  const rest = chosen ? subtractAmount(surplus, chosen.amount) : '0'
  return (
    <Card title={t('refundForm.surplus.card')}>
      <DataTable
        caption={
          orderId === null
            ? t('refundForm.surplus.counted')
            : t('refundForm.surplus.countedOf', { orderId })
        }
        columns={[
          { title: t('field.transaction') },
          { title: t('field.payment') },
          { title: t('field.paid'), kind: 'number' },
          { title: t('field.left'), kind: 'number' },
        ]}
        rows={counted.payments
          .slice(0, SHOWN_PAYMENTS)
          .map((one) => [
            <a href={storyPath({ merchantCode, transactionId: one.transactionId })}>
              {one.transactionId}
            </a>,
            <Identifier>{one.paymentId}</Identifier>,
            show(one.amount),
            show(one.refundable),
          ])}
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
