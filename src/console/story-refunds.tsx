import { describeDecidable, findObstacle, OUTCOMES, UNHINDERED } from '../decisions/obstacles.ts'
import { Badge, Card } from '../platform/html/components.tsx'
import { showExternalRefund } from '../refunds/external-view.ts'
import type { FoundRefund } from '../refunds/find.ts'
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
import type { Story } from './story.ts'
import type { NameIn } from './texts/text.ts'
import { can, formatMoney, t } from './view.ts'
import {
  describeApproval,
  describeFailure,
  describeNext,
  describeReceiver,
  describeResolution,
  type NextStep,
  nameRequester,
  signExternal,
  signRefund,
} from './words.ts'

type Refund = { found: FoundRefund; shown: RefundView; isHeld: boolean }

const listRefundColumns = (ctx: ConsoleContext): readonly ListColumn<Refund>[] => [
  cell('refund', ({ shown, isHeld }) => (
    <>
      <a href={refundPagePath(shown.merchantCode, shown.id)}>
        {t('refunds.title', { amount: formatMoney(shown.amount, shown.currency) })}
      </a>{' '}
      <State of={signRefund(shown.status)} />{' '}
      {isHeld && isOpen(shown) ? <Badge tone="warn">{t('states.held')}</Badge> : null}
    </>
  )),
  cell('nextStep', ({ found, shown, isHeld }) => (
    <>
      <Next step={describeNext(found.refund, isHeld, ctx.config)} />
      {listOutcome(shown).map((line) => (
        <div class="soft">{line}</div>
      ))}
    </>
  )),
  text('requestedBy', ({ shown }) => nameRequester(shown)),
  text('reason', ({ shown }) => shown.reason ?? t('refunds.facts.noReason')),
  time('requestedAt', ({ shown }) => shown.requestedAt),
  cell(
    'actions',
    ({ found, shown }) => {
      const offer = nameOffer(ctx, found)
      return offer === undefined ? null : (
        <a class="button quiet" href={refundPagePath(shown.merchantCode, shown.id)}>
          {t(`refunds.offers.${offer}`)}
        </a>
      )
    },
    { kind: 'actions' },
  ),
]

function listOutcome({ receiver, gatewayReference, ...shown }: RefundView): string[] {
  return [
    shown.hold && t('story.heldBy', shown.hold),
    shown.failure && describeFailure(shown.failure),
    shown.approval?.decision ? describeApproval(shown.approval) : null,
    shown.resolution && describeResolution(shown.resolution),
    receiver && `${t('field.receiver')} ${describeReceiver(receiver)}`,
    gatewayReference && `${t('field.reference')} ${gatewayReference}`,
  ].filter((line) => line !== null)
}

export function Refunds(props: Shown) {
  const { ctx, story } = props
  const { refunds } = story
  const title = t('frame.pages.refunds')
  if (refunds === undefined) return <Card title={title}>{t('story.sections.refundsHidden')}</Card>
  return (
    <>
      <TableCard
        {...{ title, columns: listRefundColumns(ctx), empty: t('story.sections.noRefunds') }}
        rows={refunds.listed.map((found) => showStoryRefund(props, found))}
        rowId={(one) => nameAnchor('refund', one.shown.id)}
      >
        {refunds.hasMore ? <p class="soft">{t('story.sections.moreRefunds')}</p> : null}
      </TableCard>
      {refunds.external.length === 0 ? null : (
        <TableCard
          {...{ title: t('story.sections.external'), columns: EXTERNAL, empty: '' }}
          rows={refunds.external.map(showExternalRefund)}
        />
      )}
    </>
  )
}

type Shown = { ctx: ConsoleContext; story: Story; shown: TransactionView }

function showStoryRefund({ ctx, story, shown: of }: Shown, found: FoundRefund): Refund {
  const shown = showRefund(ctx.encryption, found)
  const hold = of.payments.find(({ id: paymentId }) => paymentId === shown.paymentId)?.hold
  return { found, shown, isHeld: Boolean(shown.hold ?? story.accountHold ?? hold) }
}

export function findNextStep(of: Shown): NextStep | undefined {
  const open = of.story.refunds?.listed.find(({ refund }) => !ENDED.includes(refund.status))
  if (!open) return undefined
  return describeNext(open.refund, showStoryRefund(of, open).isHeld, of.ctx.config)
}

export const Next = ({ step: { text: words, at } }: { step: NextStep }) => (
  <>
    {words} {at && <Time iso={at} />}
  </>
)

const OPEN: readonly RefundView['status'][] = ['awaiting_approval', 'pending', 'unknown']

/** A hold has an effect: it may be sent, for the first time or again. */
export const isOpen = ({ status }: Pick<RefundView, 'status'>) => OPEN.includes(status)

function nameOffer(
  { config, now }: ConsoleContext,
  { refund }: FoundRefund,
): NameIn<'refunds.offers'> | undefined {
  const { status, attempts, inferred } = refund
  if (status === 'needs_review' && can('ops')) return 'decide'
  if (ENDED.includes(status) && can('ops')) {
    const decidable = describeDecidable(refund, now())
    const isOver = OUTCOMES.every((one) => findObstacle(decidable, one, config, UNHINDERED))
    return isOver ? undefined : inferred ? 'confirm' : 'correct'
  }
  if (status === 'awaiting_approval' && can('refunds:approve')) return 'approve'
  const isUnsent = (status === 'awaiting_approval' || status === 'pending') && attempts === 0
  return isUnsent && can('refunds:write') ? 'cancel' : undefined
}

/** Statuses that a person may decide otherwise. */
const ENDED: readonly FoundRefund['refund']['status'][] = ['succeeded', 'failed', 'returned']

const EXTERNAL: readonly ListColumn<ReturnType<typeof showExternalRefund>>[] = [
  money('amount', (one) => [one.amount, one.currency]),
  state('status', (one) => signExternal(one.state)),
  id('payment', ({ paymentId }) => paymentId),
  text('source', ({ source }) => t(`refunds.external.${source}`)),
  id('requestId', ({ requestId }) => requestId),
  time('time', ({ firstSeenAt }) => firstSeenAt),
]
