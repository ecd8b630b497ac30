import type { Child } from 'hono/jsx'
import { Card, Facts, Identifier } from '../platform/html/components.tsx'
import type { RefundView } from '../refunds/view.ts'
import { Time } from './cells.tsx'
import type { ConsoleContext } from './context.ts'
import { formatMoney } from './format-money.ts'
import { HoldFacts } from './holds.tsx'
import { nameAnchor, storyPath } from './paths.ts'
import type { ShownRefundPage } from './refund-subject.ts'
import { describeMethod, RefundStatus } from './states.tsx'
import { Next } from './story-refunds.tsx'
import { t } from './view.ts'
import {
  describeApproval,
  describeFailure,
  describeNext,
  describeReceiver,
  describeResolution,
  nameKnown,
  nameRequester,
} from './words.ts'

type Fact = readonly [name: string, value: Child]

/** What is asked, for whom, by whom and why, and what became of it. */
export function RefundFacts({ shown, ctx }: { shown: ShownRefundPage; ctx: ConsoleContext }) {
  const { view } = shown
  const rows = [...listRequest(shown, ctx), ...listResult(view)]
  return (
    <Card title={t('decisions.asked.title')}>
      <Facts rows={rows.filter(([, value]) => value !== null)} />
      {view.inferred ? <p class="soft">{t('refunds.inferred')}</p> : null}
      {view.selfDecided ? <p class="soft">{t('refunds.decision.self')}</p> : null}
      <p>
        <a href={storyPath(view, nameAnchor('refund', view.id))}>{t('decisions.asked.story')}</a>
      </p>
    </Card>
  )
}

function listRequest(shown: ShownRefundPage, ctx: ConsoleContext): Fact[] {
  const { view, payment, found } = shown
  const { amount, currency } = view
  const isHeld = view.hold !== null || view.accountHold !== null || payment.payment.hold !== null
  return [
    [t('field.status'), <RefundStatus status={view.status} />],
    [t('field.nextStep'), <Next step={describeNext(found.refund, isHeld, ctx.config)} />],
    [t('field.amount'), formatMoney(amount, currency)],
    [t('field.receiver'), nameReceiver(shown)],
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
  const { failure, approval, resolution, hold, accountHold, fee, currency } = view
  const { gatewayReference, gatewayReferenceSource: source } = view
  return [
    [
      t('field.reference'),
      gatewayReference && (
        <>
          <Identifier>{gatewayReference}</Identifier>{' '}
          {source && t(`refunds.referenceSource.${source}`)}
        </>
      ),
    ],
    [t('field.fee'), fee && formatMoney(fee, currency)],
    [t('field.failure'), failure && describeFailure(failure)],
    [t('field.approval'), approval?.decision ? describeApproval(approval) : null],
    [t('field.decision'), resolution && describeResolution(resolution)],
    [t('field.hold'), hold && <HoldFacts hold={hold} />],
    [t('field.accountHold'), accountHold ? <HoldFacts hold={accountHold} /> : null],
  ]
}

/** Card payments go back the way they came. */
export function nameReceiver({ view, receiver }: ShownRefundPage): string {
  const to = receiver ?? view.receiver
  return to === null ? t('decisions.asked.sameWay') : describeReceiver(to)
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
    const outcome = nameKnown('decisions.outcomes', resolution.outcome)
    lines.push(
      name === reader
        ? t('decisions.happened.youDecided', { outcome })
        : t('decisions.happened.decided', { name, outcome }),
    )
  }
  return lines.length === 0 && failure ? [describeFailure(failure)] : lines
}
