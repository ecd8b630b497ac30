import type { Child } from 'hono/jsx'
import { Card, Facts, Identifier } from '../../../platform/html/components.tsx'
import type { RefundView } from '../../../refunds/view.ts'
import { Time } from '../../cells.tsx'
import { formatMoney } from '../../format-money.ts'
import { nameAnchor, storyPath } from '../../paths.ts'
import { describeMethod, RefundStatus } from '../../states.tsx'
import { TEXTS } from '../../texts/en.ts'
import { nameOutcome } from '../../words.ts'
import type { ShownRefundPage } from './read-refund.ts'

const texts = TEXTS.decisions
const { asked } = texts

/** What is asked, for whom, by whom and why, and what became of it. */
export function RefundFactsCard({ shown }: { shown: ShownRefundPage }) {
  const { view } = shown
  const key = { merchantCode: view.merchantCode, transactionId: view.transactionId }
  const rows = [...listRequest(shown), ...listResult(view)]
  return (
    <Card title={asked.title}>
      <Facts rows={rows.filter(([, value]) => value !== null)} />
      <p>
        <a href={storyPath(key, nameAnchor('refund', view.id))}>{asked.story}</a>
      </p>
    </Card>
  )
}

type Row = readonly [name: string, value: Child]

function listRequest({ view, payment }: ShownRefundPage): Row[] {
  const { amount, currency, requestedBy, onBehalfOf, requestedAt } = view
  const asker = onBehalfOf === null ? requestedBy : `${requestedBy} ${asked.forPerson(onBehalfOf)}`
  return [
    [asked.status, <RefundStatus status={view.status} />],
    [asked.amount, formatMoney(amount, currency)],
    [asked.receiver, describeReceiver(view)],
    [asked.askedBy, asker],
    [asked.askedAt, <Time iso={requestedAt} />],
    [asked.reason, view.reason],
    [asked.payment, <Identifier>{view.paymentId}</Identifier>],
    [asked.paid, formatMoney(payment.payment.amount, currency)],
    [asked.left, formatMoney(payment.refundable, currency)],
    [asked.method, describeMethod(payment.payment.paymentMethod)],
    [asked.order, view.orderId],
    [asked.account, view.merchantCode],
    [asked.requestId, <Identifier>{view.id}</Identifier>],
  ]
}

function listResult(view: RefundView): Row[] {
  const { failure, approval, resolution, hold, accountHold, fee, currency, gatewayReference } = view
  return [
    [asked.gatewayReference, gatewayReference && <Identifier>{gatewayReference}</Identifier>],
    [asked.fee, fee && formatMoney(fee, currency)],
    [asked.failure, failure && texts.failure(failure.code, failure.message)],
    [asked.approval, describeApproval(approval)],
    [
      asked.decision,
      resolution &&
        texts.decided(nameOutcome(resolution.outcome), resolution.by, resolution.reason),
    ],
    [asked.hold, hold && texts.by(hold.by, hold.reason)],
    [asked.accountHold, accountHold ? texts.by(accountHold.by, accountHold.reason) : null],
  ]
}

/** The receiver with a masked account number; card payments go back the way they came. */
function describeReceiver({ receiver }: RefundView): string {
  if (receiver === null) return asked.sameWay
  return asked.receiverText(receiver.accountName, receiver.accountNumber, receiver.swiftCode)
}

function describeApproval(approval: RefundView['approval']): string | null {
  if (!approval?.decision || approval.by === null) return null
  const { approved, declined } = texts.happened
  const line = (approval.decision === 'approved' ? approved : declined)(approval.by)
  return approval.reason === null ? line : `${line} ${approval.reason}`
}
