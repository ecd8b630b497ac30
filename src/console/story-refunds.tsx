import {
  describeDecidable,
  findObstacle,
  isCancellable,
  OUTCOMES,
  UNHINDERED,
} from '../decisions/obstacles.ts'
import { Badge, Card } from '../platform/html/components.tsx'
import { showExternalRefund } from '../refunds/external-view.ts'
import type { FoundRefund } from '../refunds/find.ts'
import { STATES } from '../refunds/lifecycle.ts'
import { type RefundView, showRefund } from '../refunds/view.ts'
import type { TransactionView } from '../transactions/view.ts'
import {
  cell,
  id,
  type ListColumn,
  money,
  State,
  state,
  TableCard,
  Time,
  text,
  time,
} from './cells.tsx'
import type { ConsoleContext } from './env.ts'
import { nameAnchor, refundPagePath } from './paths.ts'
import { nameReason } from './reasons.tsx'
import type { Story } from './story.ts'
import type { NameIn } from './texts/text.ts'
import { can, formatMoney, keepTexts, t } from './view.ts'
import * as words from './words.ts'

type StoryRefund = ReturnType<typeof listStoryRefunds>[number]

export function listStoryRefunds(ctx: ConsoleContext, story: Story, shown: TransactionView) {
  return (story.refunds?.listed ?? []).map((found) => {
    const refund = showRefund(ctx.encryption, found)
    const payment = shown.payments.find((one) => one.id === refund.paymentId)
    const isHeld = Boolean(refund.hold ?? story.accountHold ?? payment?.hold)
    const next = words.describeNext(found.refund, isHeld, ctx.config)
    return {
      refund,
      isHeld,
      next,
      offer: nameOffer(ctx, found),
      isEnded: STATES[refund.status].ended,
    }
  })
}

const COLUMNS: readonly ListColumn<StoryRefund>[] = [
  cell('refund', ({ refund, isHeld }) => (
    <>
      <a href={refundPagePath(refund.merchantCode, refund.id)}>
        {t('refunds.title', { amount: formatMoney(refund.amount, refund.currency) })}
      </a>{' '}
      <State of={words.signRefund(refund.status)} />{' '}
      {isHeld && isOpen(refund) ? <Badge tone="warn">{t('states.held')}</Badge> : null}
    </>
  )),
  cell('nextStep', ({ refund, next }) => (
    <>
      <Next step={next} />
      {listOutcome(refund).map((line) => (
        <div class="soft">{line}</div>
      ))}
    </>
  )),
  text('requestedBy', ({ refund }) => words.nameRequester(refund)),
  text('reason', ({ refund: { reason } }) =>
    reason ? nameReason(reason) : t('refunds.facts.noReason'),
  ),
  time('requestedAt', ({ refund }) => refund.requestedAt),
  cell(
    'actions',
    ({ refund, offer }) =>
      offer && (
        <a class="button quiet" href={refundPagePath(refund.merchantCode, refund.id)}>
          {t(`refunds.offers.${offer}`)}
        </a>
      ),
    { kind: 'actions' },
  ),
]

function listOutcome({ receiver, gatewayReference, ...shown }: RefundView): string[] {
  return keepTexts([
    shown.hold && t('story.heldBy', shown.hold),
    shown.failure && words.describeFailure(shown.failure),
    shown.approval?.decision && words.describeApproval(shown.approval),
    shown.resolution && words.describeResolution(shown.resolution),
    receiver && `${t('field.receiver')} ${words.describeReceiver(receiver)}`,
    gatewayReference && `${t('field.gatewayReference')} ${gatewayReference}`,
  ])
}

export function Refunds({ story, rows }: { story: Story; rows: readonly StoryRefund[] }) {
  const title = t('frame.pages.refunds')
  if (!story.refunds) return <Card title={title}>{t('story.sections.refundsHidden')}</Card>
  const { hasMore, external, hasMoreExternal } = story.refunds
  const { transactionId } = story.found.transaction
  return (
    <>
      <TableCard
        {...{ title, columns: COLUMNS, rows, empty: t('story.sections.noRefunds') }}
        rowId={({ refund }) => nameAnchor('refund', refund.id)}
      >
        {hasMore && (
          <p class="soft">
            {t('story.sections.moreRefunds')}{' '}
            <a href={`/console/refunds?${new URLSearchParams({ transactionId })}`}>
              {t('story.sections.allRefunds')}
            </a>
          </p>
        )}
      </TableCard>
      {external.length > 0 && (
        <TableCard
          {...{ title: t('story.sections.external'), columns: EXTERNAL }}
          rows={external.map(showExternalRefund)}
        >
          {hasMoreExternal && <p class="soft">{t('story.sections.moreRefunds')}</p>}
        </TableCard>
      )}
    </>
  )
}

export const Next = ({ step: { text: said, at } }: { step: words.NextStep }) => (
  <>
    {said} {at && <Time iso={at} />}
  </>
)

/** Whether a hold would have an effect: the refund may be sent, or sent again. */
export const isOpen = ({ status }: Pick<RefundView, 'status'>) =>
  STATES[status].unsent || status === 'unknown'

function nameOffer(
  { config, now }: ConsoleContext,
  { refund }: FoundRefund,
): NameIn<'refunds.offers'> | undefined {
  const { status, inferred } = refund
  if (status === 'needs_review' && can('ops')) return 'decide'
  if (STATES[status].ended && can('ops')) {
    const decidable = describeDecidable(refund, now())
    const isOver = OUTCOMES.every((one) => findObstacle(decidable, one, config, UNHINDERED))
    return isOver ? undefined : inferred ? 'confirm' : 'correct'
  }
  if (status === 'awaiting_approval' && can('refunds:approve')) return 'approve'
  return isCancellable(refund) && can('refunds:write') ? 'cancel' : undefined
}

const EXTERNAL: readonly ListColumn<ReturnType<typeof showExternalRefund>>[] = [
  money('amount', (one) => [one.amount, one.currency]),
  state('status', (one) => words.signExternal(one.state)),
  id('payment', ({ paymentId }) => paymentId),
  text('source', ({ source }) => t(`refunds.external.${source}`)),
  id('requestId', ({ requestId }) => requestId),
  time('time', ({ firstSeenAt }) => firstSeenAt),
]
