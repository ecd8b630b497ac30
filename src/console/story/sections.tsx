import type { ListedWrite } from '../../access/audit.ts'
import type { DiscrepancyRow } from '../../discrepancies/kinds.ts'
import { showDiscrepancy } from '../../discrepancies/routes.ts'
import { Card, DataTable, Facts, Identifier } from '../../platform/html/components.tsx'
import { toIso } from '../../platform/postgres/row-set.ts'
import { type ExternalRecord, showExternalRefund } from '../../refunds/external-view.ts'
import type { ReceivedMessage } from '../../transactions/read-timeline.ts'
import type { TransactionWithPayments } from '../../transactions/types.ts'
import type { SentEvent } from '../../webhooks/delivery-log.ts'
import { Time } from '../cells.tsx'
import { formatMoney } from '../format-money.ts'
import { discrepancyPath, storyPath } from '../paths.ts'
import { ExternalRefundState, TransactionState } from '../states.tsx'
import { TEXTS } from '../texts/en.ts'
import { describeSide, nameKind } from '../words.ts'

const {
  sections,
  columns,
  discrepancy,
  paymentFacts,
  messages: texts,
  operations,
  webhook,
} = TEXTS.story

/** Where the sources disagree about a transaction; nothing for who may not read it. */
export function Discrepancies({ rows }: { rows: readonly DiscrepancyRow[] | undefined }) {
  if (rows === undefined) return null
  return (
    <Card title={sections.discrepancies}>
      {rows.length === 0 ? (
        <p>{sections.noDiscrepancies}</p>
      ) : (
        <DataTable
          caption={sections.discrepancies}
          columns={[
            { title: columns.kind },
            { title: columns.ours },
            { title: columns.theirs },
            { title: columns.status },
            { title: columns.seen },
          ]}
          rows={rows
            .map(showDiscrepancy)
            .map((one) => [
              <a href={discrepancyPath(one.merchantCode, one.id)}>{nameKind(one.kind)}</a>,
              describeSide(one.ours),
              describeSide(one.theirs),
              describeStatus(one),
              <Time iso={one.firstSeenAt} />,
            ])}
        />
      )}
    </Card>
  )
}

function describeStatus({ resolvedAt, resolution, assignee }: ReturnType<typeof showDiscrepancy>) {
  if (resolution !== null) return discrepancy.resolved(resolution.by, resolution.reason)
  if (resolvedAt !== null) return discrepancy.agreed
  return assignee === null ? discrepancy.open : discrepancy.assigned(assignee)
}

const { facts, external } = TEXTS.refunds

/** Refunds of the transaction that were made at the gateway's own portal; nothing when there are none. */
export function ExternalRefunds({ rows }: { rows: readonly ExternalRecord[] }) {
  if (rows.length === 0) return null
  return (
    <Card title={sections.external}>
      <DataTable
        caption={sections.external}
        columns={[
          { title: paymentFacts.amount, kind: 'number' },
          { title: columns.status },
          { title: facts.payment },
          { title: facts.source },
          { title: facts.id },
          { title: columns.since },
        ]}
        rows={rows
          .map(showExternalRefund)
          .map((one) => [
            formatMoney(one.amount, one.currency),
            <ExternalRefundState state={one.state} />,
            <Identifier>{one.paymentId}</Identifier>,
            external[one.source],
            one.requestId === null ? '' : <Identifier>{one.requestId}</Identifier>,
            <Time iso={one.firstSeenAt} />,
          ])}
      />
    </Card>
  )
}

/** What the gateway sent, as it was received, folded away. */
export function Messages({ messages }: { messages: readonly ReceivedMessage[] }) {
  return (
    <Card title={sections.messages} note={sections.messagesNote}>
      {messages.length === 0 ? <p>{sections.noMessages}</p> : null}
      {messages.map((message) => (
        <details id={`message-${message.type}-${message.id}`}>
          <summary>
            {texts[message.type]} · <Time iso={message.at} />
          </summary>
          <Body message={message} />
        </details>
      ))}
    </Card>
  )
}

function Body({ message: { members, text } }: { message: ReceivedMessage }) {
  if (members !== undefined) return <Facts rows={members.map(({ name, value }) => [name, value])} />
  return text === '' ? <p>{texts.empty}</p> : <pre>{text}</pre>
}

/** What people and order systems asked for, and who it was. */
export function Requests({ requests }: { requests: readonly ListedWrite[] }) {
  return (
    <Card title={sections.requests} note={sections.webhooksNote}>
      {requests.length === 0 ? (
        <p>{sections.noRequests}</p>
      ) : (
        <DataTable
          caption={sections.requests}
          columns={[
            { title: columns.who },
            { title: columns.what },
            { title: columns.object },
            { title: columns.since },
          ]}
          rows={requests.map(({ actor, operation, objectId, at }) => [
            actor,
            nameOperation(operation),
            <Identifier>{objectId}</Identifier>,
            <Time iso={at} />,
          ])}
        />
      )}
    </Card>
  )
}

/** An operation in words; one that has none here is shown as it is recorded. */
function nameOperation(operation: string): string {
  return Object.entries(operations).find(([known]) => known === operation)?.[1] ?? operation
}

/** The other transactions that name the same order. */
export function SameOrder(props: {
  orderId: string | null
  others: readonly TransactionWithPayments[]
}) {
  const { orderId, others } = props
  if (orderId === null) return <Card title={sections.order}>{sections.noOrder}</Card>
  return (
    <Card title={sections.order} note={sections.orderOf(orderId)}>
      {others.length === 0 ? (
        <p>{sections.noOthers}</p>
      ) : (
        <DataTable
          caption={sections.order}
          columns={[
            { title: columns.transaction },
            { title: columns.state },
            { title: columns.paid, kind: 'number' },
            { title: columns.since },
          ]}
          rows={others.map(({ transaction: t }) => [
            <a href={storyPath(t)}>{t.transactionId}</a>,
            <TransactionState state={t.state} />,
            formatMoney(t.paidAmount, t.currency),
            <Time iso={toIso(t.firstSeenAt)} />,
          ])}
        />
      )}
    </Card>
  )
}

/** The webhooks that were sent for a transaction, and what came of each. */
export function Webhooks({ webhooks }: { webhooks: readonly SentEvent[] }) {
  return (
    <Card title={sections.webhooks} note={sections.webhooksNote}>
      {webhooks.length === 0 ? (
        <p>{sections.noWebhooks}</p>
      ) : (
        <DataTable
          caption={sections.webhooks}
          columns={[
            { title: columns.event },
            { title: columns.endpoint },
            { title: columns.result },
            { title: columns.time },
            { title: columns.next },
          ]}
          rows={webhooks.map((one) => [
            one.type,
            nameHost(one.url),
            describeResult(one),
            one.sentAt === null ? webhook.none : <Time iso={toIso(one.sentAt)} />,
            one.nextAttemptAt === null ? webhook.none : <Time iso={toIso(one.nextAttemptAt)} />,
          ])}
        />
      )}
    </Card>
  )
}

/** Of an endpoint's address only the host is shown: the rest may hold a secret. */
function nameHost(url: string | null): string {
  return url === null ? webhook.deleted : (URL.parse(url)?.host ?? webhook.none)
}

function describeResult({ sentAt, attempt, error, status }: SentEvent): string {
  if (sentAt === null) return webhook.waiting
  return error === null ? webhook.delivered(status) : webhook.failed(attempt, error)
}
