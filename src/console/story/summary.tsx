import type { Child } from 'hono/jsx'
import { compareAmounts, isPositive } from '../../money.ts'
import { Card, Facts, Identifier, Notice } from '../../platform/html/components.tsx'
import { toIso } from '../../platform/postgres/row-set.ts'
import type { ShownTransaction } from '../../transactions/types.ts'
import type { TransactionView } from '../../transactions/view.ts'
import { Time } from '../cells.tsx'
import type { ConsoleRequest } from '../env.ts'
import { formatMoney } from '../format-money.ts'
import { Form } from '../forms/form.tsx'
import { storyPath, surplusPath } from '../paths.ts'
import { hasScope } from '../permissions.ts'
import { TEXTS } from '../texts/en.ts'
import type { Story } from './load-story.ts'

const { headline, payment } = TEXTS.story

/** Returns the state of a transaction and its amounts in words, e.g. "Paid in full, 250,000 VND". */
export function describeState(shown: TransactionView): string {
  const amounts = {
    paid: shown.paidAmount,
    refunded: shown.refundedAmount,
    expected: shown.expectedAmount ?? '0',
    currency: shown.currency,
  }
  switch (shown.state) {
    case 'pending':
      return describePending(shown)
    case 'failed':
      return headline.failed
    case 'paid':
      return headline[comparePaid(shown)](amounts)
    case 'partially_refunded':
      return headline.partlyRefunded(payment[comparePaid(shown)], amounts)
    case 'refunded':
      return headline.refunded(amounts)
  }
}

function describePending({ sync, payments }: TransactionView): string {
  if (sync.status === 'unconfirmed') return headline.unconfirmed
  return payments.length === 0 ? headline.none : headline.inProgress
}

/** Compares what was paid with the amount of the order, where a verified notification states that. */
function comparePaid({ paidAmount, expectedAmount }: TransactionView): keyof typeof payment {
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

const { facts, warnings, actions, asking, showCurrent } = TEXTS.story

type Props = { c: ConsoleRequest; story: Story; shown: TransactionView }

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
    ...(shown.duplicatePayment ? [warnings.duplicate] : []),
    ...(surplus === undefined ? [] : [warnings.surplus(formatMoney(surplus, currency))]),
    ...(accountHold === null ? [] : [warnings.accountHeld(accountHold.by, accountHold.reason)]),
    ...(sync.status === 'abandoned' ? [warnings.abandoned] : []),
    ...(sync.status === 'unconfirmed' ? [warnings.unconfirmed] : []),
  ]
  return (
    <>
      {texts.map((text) => (
        <Notice tone="warn">{text}</Notice>
      ))}
      {sameOrder.length === 0 ? null : (
        <Notice tone="warn">
          {warnings.sameOrder}
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
  const name = (id: string | null) => (id === null ? facts.none : <Identifier>{id}</Identifier>)
  return [
    [facts.order, name(orderId)],
    [facts.merchantTxnId, name(merchantTxnId)],
    [facts.account, shown.merchantCode],
    [facts.paid, formatMoney(shown.paidAmount, currency)],
    ...(expectedAmount === null
      ? []
      : [[facts.expected, formatMoney(expectedAmount, currency)] as const]),
    ...(isPositive(shown.refundedAmount)
      ? [[facts.refunded, formatMoney(shown.refundedAmount, currency)] as const]
      : []),
    [facts.firstSeen, <Time iso={shown.firstSeenAt} />],
    [facts.updated, <Time iso={shown.updatedAt} />],
    [facts.asOf, sync.asOf === null ? facts.never : <Time iso={sync.asOf} />],
    ...(sync.nextAttemptAt === null
      ? []
      : [[facts.next, <Time iso={sync.nextAttemptAt} />] as const]),
    ...(sync.lastError === null ? [] : [[facts.lastError, sync.lastError] as const]),
  ]
}

function Actions({ c, story, shown }: Props) {
  const { transaction } = story.found
  const path = storyPath(shown)
  const maySurplus = story.surplus !== undefined && hasScope(c, 'refunds:write')
  return (
    <div class="row">
      <Form c={c} action={`${path}/sync`}>
        <button id="ask" type="submit">
          {actions.ask}
        </button>
      </Form>
      {maySurplus ? (
        <a class="button" href={surplusPath(shown)}>
          {actions.surplus}
        </a>
      ) : null}
      {isBeingAsked(transaction) ? (
        <span>
          {asking} <a href={path}>{showCurrent}</a>
        </span>
      ) : null}
    </div>
  )
}
