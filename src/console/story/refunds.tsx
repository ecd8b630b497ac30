import type { Child } from 'hono/jsx'
import { describeDecidable, findObstacle, OUTCOMES, UNHINDERED } from '../../decisions/obstacles.ts'
import { Badge, Card, Facts, Identifier } from '../../platform/html/components.tsx'
import type { FoundRefund } from '../../refunds/find.ts'
import { type RefundView, showRefund } from '../../refunds/view.ts'
import { Time } from '../cells.tsx'
import type { ConsoleContext } from '../context.ts'
import { formatMoney } from '../format-money.ts'
import { nameAnchor, refundPagePath } from '../paths.ts'
import { RefundStatus } from '../states.tsx'
import type { NameIn } from '../texts/text.ts'
import { can, t } from '../view.ts'
import { nameRequester, withMore } from '../words.ts'
import { describeNext } from './describe-next.ts'
import { HoldFacts, HoldForm, type MayRelease } from './hold.tsx'
import type { Story } from './load-story.ts'

/** Who approved or declined a refund, and why. */
export function describeApproval(of: NonNullable<RefundView['approval']>): string {
  const { decision: decided, by, reason } = of
  return decided === null || by === null
    ? t('refunds.approval.open')
    : withMore(t(`refunds.approval.${decided}`, { by }), reason)
}

/** Who decided about the outcome of a refund, and why. */
export function describeResolution(of: NonNullable<RefundView['resolution']>): string {
  const { outcome, by, reason } = of
  const known = ['succeeded', 'failed', 'returned'] as const
  return t(`refunds.decision.${known.find((one) => one === outcome) ?? 'other'}`, { by, reason })
}

/** Why a refund failed, and on whose side. */
export function describeFailure({ source, code, message }: NonNullable<RefundView['failure']>) {
  return source === 'gateway'
    ? withMore(t('refunds.failure.gateway', { code }), message)
    : t(`refunds.failure.${source}`, { message })
}

type Props = {
  ctx: ConsoleContext
  /** Whether its account or its payment is held. */
  isHeld: (paymentId: string) => boolean
  mayRelease: MayRelease
}

/** The refunds of a transaction: each with its story, and what happens to it next. */
export function Refunds(props: Props & { refunds: Story['refunds'] }) {
  const { refunds, ...rest } = props
  if (refunds === undefined)
    return <Card title={t('frame.pages.refunds')}>{t('story.sections.refundsHidden')}</Card>
  return (
    <Card title={t('frame.pages.refunds')}>
      {refunds.listed.length === 0 ? <p>{t('story.sections.noRefunds')}</p> : null}
      {refunds.listed.map((found) => (
        <RefundItem found={found} {...rest} />
      ))}
      {refunds.hasMore ? <p class="soft">{t('story.sections.moreRefunds')}</p> : null}
    </Card>
  )
}

function RefundItem(props: Props & { found: FoundRefund }) {
  const { ctx, found } = props
  const shown = showRefund(ctx.encryption, found)
  const isHeld = shown.hold !== null || props.isHeld(shown.paymentId)
  const step = describeNext(found.refund, isHeld, ctx.config)
  return (
    <article id={nameAnchor('refund', shown.id)}>
      <h3>
        {t('refunds.title', { amount: formatMoney(shown.amount, shown.currency) })}{' '}
        <RefundStatus status={shown.status} />{' '}
        {isHeld && isOpen(shown) ? <Badge tone="warn">{t('states.held')}</Badge> : null}
      </h3>
      <Facts
        rows={[
          [t('field.nextStep'), <Next step={step} />],
          ...listFacts(shown),
          ...(shown.hold === null
            ? []
            : [[t('field.hold'), <HoldFacts hold={shown.hold} />] as const]),
        ]}
      />
      {shown.inferred ? <p class="soft">{t('refunds.inferred')}</p> : null}
      {shown.selfDecided ? <p class="soft">{t('refunds.decision.self')}</p> : null}
      <RefundActions {...props} shown={shown} />
    </article>
  )
}

function Next({ step: { text, at } }: { step: ReturnType<typeof describeNext> }) {
  if (at === undefined) return <>{text}</>
  return (
    <>
      {text} <Time iso={at} />
    </>
  )
}

/** Every fact of a refund that is known. */
function listFacts(r: RefundView): (readonly [string, Child])[] {
  const { gatewayReference: reference, gatewayReferenceSource: source } = r
  return [
    [t('field.requestedBy'), nameRequester(r)],
    [t('field.requestedAt'), <Time iso={r.requestedAt} />],
    [t('field.reason'), r.reason ?? t('refunds.facts.noReason')],
    ...optional(t('field.approval'), r.approval && describeApproval(r.approval)),
    ...optional(t('field.decision'), r.resolution && describeResolution(r.resolution)),
    ...optional(t('field.failure'), r.failure && describeFailure(r.failure)),
    ...optional(t('field.receiver'), r.receiver && formatReceiver(r.receiver)),
    [
      t('field.reference'),
      reference === null || source === null ? (
        t('refunds.facts.noReference')
      ) : (
        <>
          <Identifier>{reference}</Identifier> {t(`refunds.referenceSource.${source}`)}
        </>
      ),
    ],
    ...optional(t('field.fee'), r.fee && formatMoney(r.fee, r.currency)),
    [t('field.payment'), <Identifier>{r.paymentId}</Identifier>],
    [t('field.requestId'), <Identifier>{r.id}</Identifier>],
  ]
}

const optional = (name: string, value: string | null) =>
  value === null ? [] : [[name, value] as const]

function formatReceiver(to: NonNullable<RefundView['receiver']>): string {
  return t('refunds.receiver', {
    name: to.accountName,
    number: to.accountNumber,
    code: to.swiftCode,
  })
}

const OPEN: readonly RefundView['status'][] = ['awaiting_approval', 'pending', 'unknown']

/** A hold has an effect: it may be sent, for the first time or again. */
const isOpen = ({ status }: RefundView) => OPEN.includes(status)

function RefundActions({
  ctx,
  found,
  shown,
  mayRelease,
}: Props & { found: FoundRefund; shown: RefundView }) {
  const { id, merchantCode, hold } = shown
  const offer = nameOffer(ctx, found)
  return (
    <div class="row">
      {offer === undefined ? null : (
        <a class="button quiet" href={refundPagePath(merchantCode, id)}>
          {t(`refunds.offers.${offer}`)}
        </a>
      )}
      {can('ops') && (isOpen(shown) || hold !== null) ? (
        <HoldForm
          {...{ merchantCode, id }}
          target="refund"
          isHeld={hold !== null}
          mayRelease={mayRelease('refund', id)}
        />
      ) : null}
    </div>
  )
}

/** What the person may do on the refund's own page. */
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
