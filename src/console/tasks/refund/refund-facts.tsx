import type { Child } from 'hono/jsx'
import { Card, Facts, Identifier } from '../../../platform/html/components.tsx'
import type { RefundView } from '../../../refunds/view.ts'
import { Time } from '../../cells.tsx'
import { formatMoney } from '../../format-money.ts'
import { nameAnchor, storyPath } from '../../paths.ts'
import { describeMethod, RefundStatus } from '../../states.tsx'
import { t } from '../../view.ts'
import { describeFailureCode, nameOutcome, withMore } from '../../words.ts'
import type { ShownRefundPage } from './read-refund.ts'

/** What is asked, for whom, by whom and why, and what became of it. */
export function RefundFactsCard({ shown }: { shown: ShownRefundPage }) {
  const { view } = shown
  const key = { merchantCode: view.merchantCode, transactionId: view.transactionId }
  const rows = [...listRequest(shown), ...listResult(view)]
  return (
    <Card title={t('decisions.asked.title')}>
      <Facts rows={rows.filter(([, value]) => value !== null)} />
      <p>
        <a href={storyPath(key, nameAnchor('refund', view.id))}>{t('decisions.asked.story')}</a>
      </p>
    </Card>
  )
}

type Row = readonly [name: string, value: Child]

function listRequest({ view, payment }: ShownRefundPage): Row[] {
  const { amount, currency, requestedBy, onBehalfOf, requestedAt } = view
  const asker =
    onBehalfOf === null
      ? requestedBy
      : `${requestedBy} ${t('decisions.asked.forPerson', { person: onBehalfOf })}`
  return [
    [t('field.status'), <RefundStatus status={view.status} />],
    [t('field.amount'), formatMoney(amount, currency)],
    [t('field.receiver'), describeReceiver(view)],
    [t('field.requestedBy'), asker],
    [t('field.requestedAt'), <Time iso={requestedAt} />],
    [t('field.reason'), view.reason],
    [t('field.payment'), <Identifier>{view.paymentId}</Identifier>],
    [t('field.paidAmount'), formatMoney(payment.payment.amount, currency)],
    [t('field.leftBeside'), formatMoney(payment.refundable, currency)],
    [t('field.method'), describeMethod(payment.payment.paymentMethod)],
    [t('field.order'), view.orderId],
    [t('field.account'), view.merchantCode],
    [t('field.requestId'), <Identifier>{view.id}</Identifier>],
  ]
}

function listResult(view: RefundView): Row[] {
  const { failure, approval, resolution, hold, accountHold, fee, currency, gatewayReference } = view
  return [
    [t('field.reference'), gatewayReference && <Identifier>{gatewayReference}</Identifier>],
    [t('field.fee'), fee && formatMoney(fee, currency)],
    [t('field.failure'), failure && describeFailureCode(failure)],
    [t('field.approval'), describeApproval(approval)],
    [
      t('field.decision'),
      resolution &&
        t('decisions.decided', {
          outcome: nameOutcome(resolution.outcome),
          name: resolution.by,
          reason: resolution.reason,
        }),
    ],
    [t('field.hold'), hold && withMore(hold.by, hold.reason)],
    [t('field.accountHold'), accountHold ? withMore(accountHold.by, accountHold.reason) : null],
  ]
}

/** The receiver with a masked account number; card payments go back the way they came. */
function describeReceiver({ receiver }: RefundView): string {
  if (receiver === null) return t('decisions.asked.sameWay')
  return t('decisions.asked.receiverText', {
    name: receiver.accountName,
    number: receiver.accountNumber,
    swift: receiver.swiftCode,
  })
}

function describeApproval(approval: RefundView['approval']): string | null {
  if (!approval?.decision || approval.by === null) return null
  const line = t(`decisions.happened.${approval.decision}`, { name: approval.by })
  return approval.reason === null ? line : `${line} ${approval.reason}`
}
