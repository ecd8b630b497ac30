import type { Child } from 'hono/jsx'
import { compareAmounts, isPositive } from '../../money.ts'
import { Card, Facts, Identifier, Notice } from '../../platform/html/components.tsx'
import { toIso } from '../../platform/postgres/row-set.ts'
import type { ShownTransaction } from '../../transactions/types.ts'
import type { TransactionView } from '../../transactions/view.ts'
import { Time } from '../cells.tsx'
import { formatMoney } from '../format-money.ts'
import { Form } from '../forms.tsx'
import { storyPath, surplusPath } from '../paths.ts'
import type { NameIn } from '../texts/text.ts'
import { can, t } from '../view.ts'
import type { Story } from './load-story.ts'

/** Returns the state of a transaction and its amounts in words, e.g. "Paid in full, 250,000 VND". */
export function describeState(shown: TransactionView): string {
  const amounts = {
    paid: formatMoney(shown.paidAmount, shown.currency),
    refunded: formatMoney(shown.refundedAmount, shown.currency),
    expected: formatMoney(shown.expectedAmount ?? '0', null),
  }
  switch (shown.state) {
    case 'pending':
      return describePending(shown)
    case 'failed':
      return t('story.headline.failed')
    case 'paid':
      if (shown.duplicatePayment) return describeTwice(shown, amounts)
      return t(`story.headline.${comparePaid(shown)}`, amounts)
    case 'partially_refunded':
      return t('story.headline.partlyRefunded', {
        ...amounts,
        before: t(`story.payment.${comparePaid(shown)}`),
        paid: formatMoney(shown.paidAmount, null),
      })
    case 'refunded':
      return t('story.headline.refunded', amounts)
  }
}

function describeTwice(
  { expectedAmount, currency }: TransactionView,
  { paid }: { paid: string },
): string {
  if (expectedAmount === null) return t('story.headline.paidTwice', { paid })
  return t('story.headline.paidTwiceOf', { paid, expected: formatMoney(expectedAmount, currency) })
}

function describePending({ sync, payments }: TransactionView): string {
  if (sync.status === 'unconfirmed') return t('story.headline.unconfirmed')
  return payments.length === 0 ? t('story.headline.none') : t('story.headline.inProgress')
}

/** Compares what was paid with the amount of the order, where a verified notification states that. */
function comparePaid({ paidAmount, expectedAmount }: TransactionView): NameIn<'story.payment'> {
  if (expectedAmount === null) return 'paid'
  const compared = compareAmounts(paidAmount, expectedAmount)
  if (compared === 0) return 'paidInFull'
  return compared < 0 ? 'paidInPart' : 'overpaid'
}

/** The clocks of database and process differ by less (ms). */
const SLACK_MS = 1_000

/** Whether a query of the transaction runs, or is due at once. */
export function isBeingAsked({ dueAt, leaseId }: Pick<ShownTransaction, 'dueAt' | 'leaseId'>) {
  if (leaseId !== null) return true
  return dueAt !== null && Date.parse(toIso(dueAt)) <= Date.now() + SLACK_MS
}

type Props = { story: Story; shown: TransactionView }

/** The state in words, what to look at, the ids, and what a person may do. */
export function Summary(props: Props) {
  return (
    <Card title={describeState(props.shown)} id="state">
      <Warnings {...props} />
      <Facts rows={listFacts(props.shown)} />
      <Actions {...props} />
    </Card>
  )
}

function Warnings({ story, shown }: Props) {
  const { accountHold, surplus } = story
  const { merchantCode, sameOrder, currency, sync } = shown
  const texts = [
    ...(shown.duplicatePayment ? [t('story.warnings.duplicate')] : []),
    ...(surplus === undefined
      ? []
      : [t('story.warnings.surplus', { amount: formatMoney(surplus, currency) })]),
    ...(accountHold === null
      ? []
      : [t('story.warnings.accountHeld', { by: accountHold.by, reason: accountHold.reason })]),
    ...(sync.status === 'abandoned' ? [t('story.warnings.abandoned')] : []),
    ...(sync.status === 'unconfirmed' ? [t('story.warnings.unconfirmed')] : []),
  ]
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

function listFacts(shown: TransactionView): (readonly [string, Child])[] {
  const { orderId, merchantTxnId, expectedAmount, currency, sync } = shown
  const name = (id: string | null) =>
    id === null ? t('states.notStated') : <Identifier>{id}</Identifier>
  return [
    [t('field.order'), name(orderId)],
    [t('field.merchantTxnId'), name(merchantTxnId)],
    [t('field.account'), shown.merchantCode],
    [t('field.paid'), formatMoney(shown.paidAmount, currency)],
    ...(expectedAmount === null
      ? []
      : [[t('field.expected'), formatMoney(expectedAmount, currency)] as const]),
    ...(isPositive(shown.refundedAmount)
      ? [[t('field.refunded'), formatMoney(shown.refundedAmount, currency)] as const]
      : []),
    [t('field.firstSeen'), <Time iso={shown.firstSeenAt} />],
    [t('field.updated'), <Time iso={shown.updatedAt} />],
    [t('field.asOf'), sync.asOf === null ? t('story.facts.never') : <Time iso={sync.asOf} />],
    ...(sync.nextAttemptAt === null
      ? []
      : [[t('field.nextQuery'), <Time iso={sync.nextAttemptAt} />] as const]),
    ...(sync.lastError === null ? [] : [[t('field.lastError'), sync.lastError] as const]),
  ]
}

function Actions({ story, shown }: Props) {
  const { transaction } = story.found
  const path = storyPath(shown)
  const maySurplus = story.surplus !== undefined && can('refunds:write')
  return (
    <div class="row">
      <Form action={`${path}/sync`}>
        <button id="ask" type="submit">
          {t('story.actions.ask')}
        </button>
      </Form>
      {maySurplus ? (
        <a class="button" href={surplusPath(shown)}>
          {t('story.actions.surplus')}
        </a>
      ) : null}
      {isBeingAsked(transaction) ? (
        <span>
          {t('story.asking')} <a href={path}>{t('story.showCurrent')}</a>
        </span>
      ) : null}
    </div>
  )
}
