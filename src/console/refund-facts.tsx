import type { Child } from 'hono/jsx'
import { Card, Facts, Identifier } from '../platform/html/components.tsx'
import type { RefundView } from '../refunds/view.ts'
import { Time } from './cells.tsx'
import { formatMoney } from './format-money.ts'
import { nameAnchor, storyPath } from './paths.ts'
import type { ShownRefundPage } from './refund-subject.ts'
import { describeMethod, RefundStatus } from './states.tsx'
import { t } from './view.ts'
import { describeFailureCode, nameOutcome, nameRequester, withMore } from './words.ts'

type Fact = readonly [name: string, value: Child]

/** What is asked, for whom, by whom and why, and what became of it. */
export function RefundFacts({ shown }: { shown: ShownRefundPage }) {
  const { view } = shown
  const rows = [...listRequest(shown), ...listResult(view)]
  return (
    <Card title={t('decisions.asked.title')}>
      <Facts rows={rows.filter(([, value]) => value !== null)} />
      <p>
        <a href={storyPath(view, nameAnchor('refund', view.id))}>{t('decisions.asked.story')}</a>
      </p>
    </Card>
  )
}

function listRequest(shown: ShownRefundPage): Fact[] {
  const { view, payment } = shown
  const { amount, currency } = view
  return [
    [t('field.status'), <RefundStatus status={view.status} />],
    [t('field.amount'), formatMoney(amount, currency)],
    [t('field.receiver'), describeReceiver(shown)],
    [t('field.requestedBy'), nameRequester(view)],
    [t('field.requestedAt'), <Time iso={view.requestedAt} />],
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

function listResult(view: RefundView): Fact[] {
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
          ...{ name: resolution.by, reason: resolution.reason },
          outcome: nameOutcome(resolution.outcome),
        }),
    ],
    [t('field.hold'), hold && withMore(hold.by, hold.reason)],
    [t('field.accountHold'), accountHold ? withMore(accountHold.by, accountHold.reason) : null],
  ]
}

/** Card payments go back the way they came. */
export function describeReceiver({ view, receiver }: ShownRefundPage): string {
  const to = receiver ?? view.receiver
  if (to === null) return t('decisions.asked.sameWay')
  const { accountName: name, accountNumber: number, swiftCode: code } = to
  return t('refunds.receiver', { name, number, code })
}

function describeApproval(approval: RefundView['approval']): string | null {
  if (!approval?.decision || approval.by === null) return null
  const line = t(`decisions.happened.${approval.decision}`, { name: approval.by })
  return approval.reason === null ? line : `${line} ${approval.reason}`
}

/** What became of a refund while a person was about to decide: who approved, declined or decided it, or why it failed. */
export function describeEvents(
  { approval, resolution, failure }: RefundView,
  reader: string,
): string[] {
  const lines: string[] = []
  if (approval?.decision && approval.by !== null) {
    const { decision, by: name } = approval
    const own = decision === 'approved' ? 'youApproved' : 'youDeclined'
    const isOwn = name === reader
    lines.push(
      isOwn ? t(`decisions.happened.${own}`) : t(`decisions.happened.${decision}`, { name }),
    )
  }
  if (resolution) {
    const { by: name } = resolution
    const outcome = nameOutcome(resolution.outcome)
    lines.push(
      name === reader
        ? t('decisions.happened.youDecided', { outcome })
        : t('decisions.happened.decided', { name, outcome }),
    )
  }
  return lines.length === 0 && failure ? [describeFailureCode(failure)] : lines
}
