import type { Child } from 'hono/jsx'
import { isPositive } from '../../money.ts'
import { Card, Facts, Identifier, Notice, Time } from '../../platform/html/components.tsx'
import type { TransactionView } from '../../transactions/view.ts'
import type { ConsoleRequest } from '../env.ts'
import { formatMoney } from '../format-money.ts'
import { Form } from '../forms/form.tsx'
import { storyPath, surplusPath } from '../paths.ts'
import { hasScope } from '../permissions.ts'
import { TEXTS } from '../texts/en.ts'
import { describeState } from './describe-state.ts'
import { isBeingAsked } from './is-being-asked.ts'
import type { Story } from './load-story.ts'

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
