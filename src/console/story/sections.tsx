import type { Child } from 'hono/jsx'
import type { ListedWrite } from '../../access/audit.ts'
import type { DiscrepancyRow } from '../../discrepancies/kinds.ts'
import { type DiscrepancyView, showDiscrepancy } from '../../discrepancies/routes.ts'
import { Card, Facts, Identifier } from '../../platform/html/components.tsx'
import { toIso } from '../../platform/postgres/row-set.ts'
import { type ExternalRecord, showExternalRefund } from '../../refunds/external-view.ts'
import type { ReceivedMessage } from '../../transactions/read-timeline.ts'
import type { TransactionWithPayments } from '../../transactions/types.ts'
import type { SentEvent } from '../../webhooks/log.ts'
import { cell, type ListColumn, link, money, Rows, state, Time, text, time } from '../cells.tsx'
import { discrepancyPath, storyPath } from '../paths.ts'
import { ExternalRefundState, signTransaction } from '../states.tsx'
import { nameIn, t } from '../view.ts'
import { describeSide, nameKind } from '../words.ts'

/** A part of the page that is a table. */
function Section<Row>(props: {
  title: string
  note?: Child
  columns: readonly ListColumn<Row>[]
  rows: readonly Row[]
  empty: string
}) {
  const { title, note, ...table } = props
  return (
    <Card title={title} note={note}>
      <Rows caption={title} {...table} />
    </Card>
  )
}

/** An id that a script can copy. */
const id = <Row,>(title: 'payment' | 'requestId' | 'object', value: (row: Row) => string | null) =>
  cell<Row>(title, value, (row) => {
    const shown = value(row)
    return shown === null ? '' : <Identifier>{shown}</Identifier>
  })

const DISCREPANCIES: readonly ListColumn<DiscrepancyView>[] = [
  link(
    'kind',
    ({ kind }) => nameKind(kind),
    (one) => discrepancyPath(one.merchantCode, one.id),
  ),
  text('ours', ({ ours }) => describeSide(ours)),
  text('theirs', ({ theirs }) => describeSide(theirs)),
  text('status', ({ resolvedAt, resolution, assignee: name }) => {
    if (resolution !== null) return t('story.discrepancy.resolved', resolution)
    if (resolvedAt !== null) return t('story.discrepancy.agreed')
    return name === null ? t('lists.open') : t('story.discrepancy.assigned', { name })
  }),
  time('time', ({ firstSeenAt }) => firstSeenAt),
]

/** Where the sources disagree about a transaction; nothing for who may not read it. */
export function Discrepancies({ rows }: { rows: readonly DiscrepancyRow[] | undefined }) {
  if (rows === undefined) return null
  return (
    <Section
      {...{ title: t('frame.pages.discrepancies'), columns: DISCREPANCIES }}
      rows={rows.map(showDiscrepancy)}
      empty={t('story.sections.noDiscrepancies')}
    />
  )
}

type ExternalView = ReturnType<typeof showExternalRefund>

const EXTERNAL: readonly ListColumn<ExternalView>[] = [
  money('amount', (one) => [one.amount, one.currency]),
  cell(
    'status',
    (one) => one.state,
    (one) => <ExternalRefundState state={one.state} />,
  ),
  id('payment', ({ paymentId }) => paymentId),
  text('source', ({ source }) => t(`refunds.external.${source}`)),
  id('requestId', ({ requestId }) => requestId),
  time('time', ({ firstSeenAt }) => firstSeenAt),
]

/** Refunds of the transaction that were made at the gateway's own portal; nothing when there are none. */
export function ExternalRefunds({ rows }: { rows: readonly ExternalRecord[] }) {
  if (rows.length === 0) return null
  return (
    <Section
      {...{ title: t('story.sections.external'), columns: EXTERNAL, empty: '' }}
      rows={rows.map(showExternalRefund)}
    />
  )
}

/** What the gateway sent, as it was received, folded away. */
export function Messages({ messages }: { messages: readonly ReceivedMessage[] }) {
  return (
    <Card title={t('story.sections.messages')} note={t('story.sections.messagesNote')}>
      {messages.length === 0 ? <p>{t('story.sections.noMessages')}</p> : null}
      {messages.map((message) => (
        <details id={`message-${message.type}-${message.id}`}>
          <summary>
            {t(`story.messages.${message.type}`)} · <Time iso={message.at} />
          </summary>
          <Body message={message} />
        </details>
      ))}
    </Card>
  )
}

function Body({ message: { members, text: received } }: { message: ReceivedMessage }) {
  if (members !== undefined) return <Facts rows={members.map(({ name, value }) => [name, value])} />
  return received === '' ? <p>{t('story.messages.empty')}</p> : <pre>{received}</pre>
}

const REQUESTS: readonly ListColumn<ListedWrite>[] = [
  text('who', ({ actor }) => actor),
  text('what', ({ operation }) => nameIn('story.operations', operation)),
  id('object', ({ objectId }) => objectId),
  time('time', ({ at }) => at),
]

/** What people and order systems asked for, and who it was. */
export function Requests({ requests }: { requests: readonly ListedWrite[] }) {
  return (
    <Section
      {...{ title: t('story.sections.requests'), note: t('story.sections.webhooksNote') }}
      {...{ columns: REQUESTS, rows: requests, empty: t('story.sections.noRequests') }}
    />
  )
}

const TRANSACTIONS: readonly ListColumn<TransactionWithPayments>[] = [
  link(
    'transaction',
    ({ transaction }) => transaction.transactionId,
    ({ transaction }) => storyPath(transaction),
  ),
  state('state', ({ transaction }) => signTransaction(transaction)),
  money('paid', ({ transaction: { paidAmount, currency } }) => [paidAmount, currency]),
  time('time', ({ transaction }) => toIso(transaction.firstSeenAt)),
]

/** The other transactions that name the same order. */
export function SameOrder(props: {
  orderId: string | null
  others: readonly TransactionWithPayments[]
}) {
  const { orderId: order, others } = props
  const title = t('story.sections.order')
  if (order === null) return <Card title={title}>{t('story.sections.noOrder')}</Card>
  return (
    <Section
      {...{ title, note: t('story.sections.orderOf', { order }), columns: TRANSACTIONS }}
      {...{ rows: others, empty: t('story.sections.noOthers') }}
    />
  )
}

const WEBHOOKS: readonly ListColumn<SentEvent>[] = [
  text('event', ({ type }) => type),
  text('endpoint', ({ url }) => nameHost(url)),
  text('result', ({ sentAt, attempt, error, status }) => {
    if (sentAt === null) return t('story.webhook.waiting')
    return error === null
      ? t('story.webhook.delivered', { status: status ?? t('story.webhook.none') })
      : t('story.webhook.failed', { attempt, error })
  }),
  moment('sent', ({ sentAt }) => sentAt),
  moment('next', ({ nextAttemptAt }) => nextAttemptAt),
]

/** A time that there may not be. */
function moment(title: 'sent' | 'next', value: (row: SentEvent) => string | null) {
  return cell<SentEvent>(title, value, (row) => {
    const at = value(row)
    return at === null ? t('story.webhook.none') : <Time iso={toIso(at)} />
  })
}

/** The webhooks that were sent for a transaction, and what came of each. */
export function Webhooks({ webhooks }: { webhooks: readonly SentEvent[] }) {
  return (
    <Section
      {...{ title: t('story.sections.webhooks'), note: t('story.sections.webhooksNote') }}
      {...{ columns: WEBHOOKS, rows: webhooks, empty: t('story.sections.noWebhooks') }}
    />
  )
}

/** Of an endpoint's address only the host is shown: the rest may hold a secret. */
function nameHost(url: string | null): string {
  return url === null
    ? t('story.webhook.deleted')
    : (URL.parse(url)?.host ?? t('story.webhook.none'))
}
