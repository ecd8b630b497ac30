import type { DiscrepancyRow } from '../discrepancies/kinds.ts'
import { type DiscrepancyView, showDiscrepancy } from '../discrepancies/routes.ts'
import { isPositive } from '../money.ts'
import { Badge, Card, Identifier, Notice } from '../platform/html/components.tsx'
import { toIso } from '../platform/postgres/row-set.ts'
import type { TransactionWithPayments } from '../transactions/types.ts'
import type { TransactionView } from '../transactions/view.ts'
import {
  cell,
  FieldFacts,
  id,
  type ListColumn,
  link,
  money,
  State,
  state,
  TableCard,
  Time,
  text,
  time,
} from './cells.tsx'
import { ActionForm } from './forms.tsx'
import { HoldFacts, HoldForm } from './holds.tsx'
import { discrepancyPath, nameAnchor, refundPath, storyPath, surplusPath } from './paths.ts'
import type { Story } from './story.ts'
import { Next } from './story-refunds.tsx'
import { can, formatMoney, keepTexts, t } from './view.ts'
import {
  describeMethod,
  describeSide,
  type NextStep,
  nameKind,
  signPayment,
  signTransaction,
} from './words.ts'

type Props = { story: Story; shown: TransactionView }

export function Warnings({ story, shown }: Props) {
  const { accountHold, surplus } = story
  const { merchantCode, sameOrder, currency, sync } = shown
  const texts = keepTexts([
    shown.duplicatePayment && t('story.warnings.duplicate'),
    surplus && t('story.warnings.surplus', { amount: formatMoney(surplus, currency) }),
    accountHold && t('story.warnings.accountHeld', accountHold),
    sync.status === 'abandoned' && t('story.warnings.abandoned'),
    sync.status === 'unconfirmed' && t('story.warnings.unconfirmed'),
  ])
  return (
    <>
      {texts.map((text) => (
        <Notice tone="warn">{text}</Notice>
      ))}
      {sameOrder.length === 0 ? null : (
        <Notice tone="warn">
          {t('story.warnings.sameOrder')}
          {sameOrder.map((transactionId) => (
            <>
              {' '}
              <a href={storyPath({ merchantCode, transactionId })}>{transactionId}</a>
            </>
          ))}
        </Notice>
      )}
    </>
  )
}

export function StoryFacts({
  shown,
  open,
}: {
  shown: TransactionView
  open?: NextStep | undefined
}) {
  const { orderId, merchantTxnId, expectedAmount, currency, sync } = shown
  const name = (id: string | null) =>
    id === null ? t('states.notStated') : <Identifier>{id}</Identifier>
  const ofGateway: NextStep =
    sync.nextAttemptAt === null
      ? { text: t(shown.final ? 'story.next.final' : 'story.next.waits') }
      : { text: t('story.next.asked'), at: sync.nextAttemptAt }
  return (
    <FieldFacts
      of={{
        nextStep: <Next step={open ?? ofGateway} />,
        order: name(orderId),
        expected: expectedAmount && formatMoney(expectedAmount, currency),
        merchantTxnId: name(merchantTxnId),
        transaction: name(shown.transactionId),
        account: shown.merchantCode,
        firstSeen: <Time iso={shown.firstSeenAt} />,
        asOf: nameAsOf(shown),
      }}
    />
  )
}

const nameAsOf = ({ sync: { asOf } }: TransactionView) =>
  asOf === null ? t('story.facts.never') : <Time iso={asOf} />

export function SyncCard({ shown }: { shown: TransactionView }) {
  const { nextAttemptAt, lastError } = shown.sync
  return (
    <Card title={t('story.sections.sync')}>
      <FieldFacts
        of={{
          asOf: nameAsOf(shown),
          nextQuery: nextAttemptAt && <Time iso={nextAttemptAt} />,
          lastError,
          updated: <Time iso={shown.updatedAt} />,
        }}
      />
    </Card>
  )
}

/** The clocks of the database and this process differ by less (ms). */
const SLACK_MS = 1_000

export function Actions({ story, shown }: Props) {
  const { leaseId, dueAt } = story.found.transaction
  const isDue = dueAt !== null && Date.parse(toIso(dueAt)) <= Date.now() + SLACK_MS
  const path = storyPath(shown)
  const maySurplus = story.surplus !== undefined && can('refunds:write')
  return (
    <div class="row">
      <ActionForm action={`${path}/sync`} submit={t('story.actions.ask')} />
      {maySurplus ? (
        <a class="button" href={surplusPath(shown)}>
          {t('story.actions.surplus')}
        </a>
      ) : null}
      {leaseId !== null || isDue ? (
        <span>
          {t('story.asking')} <a href={path}>{t('story.showCurrent')}</a>
        </span>
      ) : null}
    </div>
  )
}

type Payment = TransactionView['payments'][number]

const listPaymentColumns = ({ accountHold, mayRelease }: Story): readonly ListColumn<Payment>[] => [
  id('payment', (payment) => payment.id),
  cell('status', (payment) => (
    <>
      <State of={signPayment(payment.status)} />{' '}
      {payment.hold === null ? null : (
        <>
          <Badge tone="warn">{t('states.held')}</Badge>{' '}
          <small>
            <HoldFacts hold={payment.hold} />
          </small>
        </>
      )}
      {payment.missing ? <p class="bad">{t('story.paymentFacts.missing')}</p> : null}
      {payment.unreadable ? <p class="bad">{t('story.paymentFacts.unreadable')}</p> : null}
    </>
  )),
  money('amount', ({ amount, currency }) => [amount, currency]),
  text('paymentMethod', ({ paymentMethod }) => describeMethod(paymentMethod)),
  money('refunded', ({ refundedAmount, currency }) => [refundedAmount, currency]),
  money('left', ({ refundableAmount, currency }) => [refundableAmount, currency]),
  cell(
    'actions',
    ({ id: paymentId, merchantCode, hold, refundableAmount }) => (
      <div class="row">
        {!hold && !accountHold && isPositive(refundableAmount) && can('refunds:write') ? (
          <a class="button" href={refundPath(merchantCode, paymentId)}>
            {t('story.actions.refund')}
          </a>
        ) : null}
        {can('ops') ? (
          <HoldForm
            {...{ target: 'payment', merchantCode, id: paymentId, hold }}
            mayRelease={mayRelease.get(paymentId)}
          />
        ) : null}
      </div>
    ),
    { kind: 'actions' },
  ),
]

export function Payments({ story, shown }: Props) {
  return (
    <TableCard
      {...{ title: t('frame.pages.payments'), columns: listPaymentColumns(story) }}
      {...{ rows: shown.payments, empty: t('story.sections.noPayments') }}
      rowId={(payment) => nameAnchor('payment', payment.id)}
    />
  )
}

const DISCREPANCIES: readonly ListColumn<DiscrepancyView>[] = [
  link('kind', (one) => [nameKind(one.kind), discrepancyPath(one.merchantCode, one.id)]),
  text('ours', ({ ours }) => describeSide(ours)),
  text('theirs', ({ theirs }) => describeSide(theirs)),
  text('status', ({ resolvedAt, resolution, assignee: name }) => {
    if (resolution !== null) return t('story.discrepancy.resolved', resolution)
    if (resolvedAt !== null) return t('story.discrepancy.agreed')
    return name === null ? t('lists.open') : t('story.discrepancy.assigned', { name })
  }),
  time('time', ({ firstSeenAt }) => firstSeenAt),
]

export function Discrepancies({ rows }: { rows: readonly DiscrepancyRow[] | undefined }) {
  if (rows === undefined) return null
  if (rows.length === 0) return <p class="soft">{t('tasks.sections.discrepancies.empty')}</p>
  return (
    <TableCard
      {...{ title: t('frame.pages.discrepancies'), columns: DISCREPANCIES }}
      rows={rows.map(showDiscrepancy)}
    />
  )
}

const TRANSACTIONS: readonly ListColumn<TransactionWithPayments>[] = [
  link('transaction', ({ transaction }) => [transaction.transactionId, storyPath(transaction)]),
  state('state', ({ transaction }) => signTransaction(transaction)),
  money('paid', ({ transaction: { paidAmount, currency } }) => [paidAmount, currency]),
  time('time', ({ transaction }) => toIso(transaction.firstSeenAt)),
]

export function SameOrder({ story, shown: { orderId: order } }: Props) {
  const others = story.sameOrder
  if (order === null || others.length === 0) return null
  return (
    <TableCard
      {...{ title: t('story.sections.order'), note: t('story.sections.orderOf', { order }) }}
      {...{ columns: TRANSACTIONS, rows: others }}
    />
  )
}
