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
import { nameIn, t } from '../view.ts'
import { describeSide, nameKind } from '../words.ts'

/** Where the sources disagree about a transaction; nothing for who may not read it. */
export function Discrepancies({ rows }: { rows: readonly DiscrepancyRow[] | undefined }) {
  if (rows === undefined) return null
  return (
    <Card title={t('frame.pages.discrepancies')}>
      {rows.length === 0 ? (
        <p>{t('story.sections.noDiscrepancies')}</p>
      ) : (
        <DataTable
          caption={t('frame.pages.discrepancies')}
          columns={[
            { title: t('field.kind') },
            { title: t('field.ours') },
            { title: t('field.theirs') },
            { title: t('field.status') },
            { title: t('field.time') },
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
  if (resolution !== null)
    return t('story.discrepancy.resolved', { by: resolution.by, reason: resolution.reason })
  if (resolvedAt !== null) return t('story.discrepancy.agreed')
  return assignee === null ? t('lists.open') : t('story.discrepancy.assigned', { name: assignee })
}

/** Refunds of the transaction that were made at the gateway's own portal; nothing when there are none. */
export function ExternalRefunds({ rows }: { rows: readonly ExternalRecord[] }) {
  if (rows.length === 0) return null
  return (
    <Card title={t('story.sections.external')}>
      <DataTable
        caption={t('story.sections.external')}
        columns={[
          { title: t('field.amount'), kind: 'number' },
          { title: t('field.status') },
          { title: t('field.payment') },
          { title: t('field.source') },
          { title: t('field.requestId') },
          { title: t('field.time') },
        ]}
        rows={rows
          .map(showExternalRefund)
          .map((one) => [
            formatMoney(one.amount, one.currency),
            <ExternalRefundState state={one.state} />,
            <Identifier>{one.paymentId}</Identifier>,
            t(`refunds.external.${one.source}`),
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

function Body({ message: { members, text } }: { message: ReceivedMessage }) {
  if (members !== undefined) return <Facts rows={members.map(({ name, value }) => [name, value])} />
  return text === '' ? <p>{t('story.messages.empty')}</p> : <pre>{text}</pre>
}

/** What people and order systems asked for, and who it was. */
export function Requests({ requests }: { requests: readonly ListedWrite[] }) {
  return (
    <Card title={t('story.sections.requests')} note={t('story.sections.webhooksNote')}>
      {requests.length === 0 ? (
        <p>{t('story.sections.noRequests')}</p>
      ) : (
        <DataTable
          caption={t('story.sections.requests')}
          columns={[
            { title: t('field.who') },
            { title: t('field.what') },
            { title: t('field.object') },
            { title: t('field.time') },
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
  return nameIn('story.operations', operation)
}

/** The other transactions that name the same order. */
export function SameOrder(props: {
  orderId: string | null
  others: readonly TransactionWithPayments[]
}) {
  const { orderId, others } = props
  if (orderId === null)
    return <Card title={t('story.sections.order')}>{t('story.sections.noOrder')}</Card>
  return (
    <Card title={t('story.sections.order')} note={t('story.sections.orderOf', { order: orderId })}>
      {others.length === 0 ? (
        <p>{t('story.sections.noOthers')}</p>
      ) : (
        <DataTable
          caption={t('story.sections.order')}
          columns={[
            { title: t('field.transaction') },
            { title: t('field.state') },
            { title: t('field.paid'), kind: 'number' },
            { title: t('field.time') },
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
    <Card title={t('story.sections.webhooks')} note={t('story.sections.webhooksNote')}>
      {webhooks.length === 0 ? (
        <p>{t('story.sections.noWebhooks')}</p>
      ) : (
        <DataTable
          caption={t('story.sections.webhooks')}
          columns={[
            { title: t('field.event') },
            { title: t('field.endpoint') },
            { title: t('field.result') },
            { title: t('field.sent') },
            { title: t('field.next') },
          ]}
          rows={webhooks.map((one) => [
            one.type,
            nameHost(one.url),
            describeResult(one),
            one.sentAt === null ? t('story.webhook.none') : <Time iso={toIso(one.sentAt)} />,
            one.nextAttemptAt === null ? (
              t('story.webhook.none')
            ) : (
              <Time iso={toIso(one.nextAttemptAt)} />
            ),
          ])}
        />
      )}
    </Card>
  )
}

/** Of an endpoint's address only the host is shown: the rest may hold a secret. */
function nameHost(url: string | null): string {
  return url === null
    ? t('story.webhook.deleted')
    : (URL.parse(url)?.host ?? t('story.webhook.none'))
}

function describeResult({ sentAt, attempt, error, status }: SentEvent): string {
  if (sentAt === null) return t('story.webhook.waiting')
  return error === null
    ? t('story.webhook.delivered', { status: status ?? '–' })
    : t('story.webhook.failed', { attempt, error })
}
