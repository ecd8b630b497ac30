import type { Child } from 'hono/jsx'
import { Card, Facts } from '../platform/html/components.tsx'
import { toIso } from '../platform/postgres/row-set.ts'
import type { ReceivedMessage } from '../transactions/read-messages.ts'
import type { TransactionView } from '../transactions/view.ts'
import type { SentEvent } from '../webhooks/log.ts'
import type { ListedWrite } from './audit-list.ts'
import { cell, type ListColumn, Rows, Time, text } from './cells.tsx'
import { refundPagePath } from './paths.ts'
import type { History, Technical, TimelineEntry } from './story.ts'
import { describeEntry, type EntryWords } from './timeline.ts'
import { formatMoney, t } from './view.ts'
import { nameOperation } from './words.ts'

/** What only shows how the service counts: people do not need it to follow what happened. */
const UNTOLD = ['amount', 'countedAmount', 'countedRefunded', 'freed', 'notification']

/** Whether an entry of the timeline belongs to what people follow, and not to how it came to be known. */
function isTold(entry: TimelineEntry): boolean {
  if (entry.type === 'change') return !UNTOLD.includes(entry.field)
  return entry.type === 'discrepancy'
}

type Props = { shown: TransactionView; cursor: string | undefined }

export function HistoryParts(props: Props & { history: History }) {
  const { history, shown, cursor } = props
  const { timeline, writes } = history
  const told = timeline.data.filter(isTold).map((entry) => ({
    ...{ at: entry.at, order: 1 },
    line: <Entry words={describeEntry(entry, shown.currency)} at={entry.at} />,
  }))
  const done = writes.map((write) => ({
    ...{ at: write.at, order: 0 },
    line: <Write {...{ write, history, shown }} />,
  }))
  const lines = [...done, ...told].sort(
    (one, other) => Date.parse(one.at) - Date.parse(other.at) || one.order - other.order,
  )
  return (
    <TimelineCard {...{ cursor, next: timeline.nextCursor, view: 'history' }}>
      {lines.length === 0 ? <p>{t('story.sections.noHistory')}</p> : null}
      <ol class="timeline">
        {lines.map(({ line }) => (
          <li>{line}</li>
        ))}
      </ol>
    </TimelineCard>
  )
}

function Write(props: { write: ListedWrite; history: History; shown: TransactionView }) {
  const { write, history, shown } = props
  const { at, actor, operation, objectId } = write
  const refund = history.refunds.get(objectId)?.refund
  const ofPayment = shown.payments.some(({ id }) => id === objectId)
  return (
    <Line {...{ at, who: actor, title: nameOperation(operation) }}>
      {refund === undefined ? null : (
        <a href={refundPagePath(shown.merchantCode, objectId)}>
          {t('refunds.title', { amount: formatMoney(refund.amount, shown.currency) })}
        </a>
      )}
      {ofPayment ? t('timeline.subject.payment', { id: objectId }) : null}
    </Line>
  )
}

type LineProps = { at: string; who: string; title: string; children?: Child }

function Line({ at, who, title, children }: LineProps) {
  return (
    <>
      <span class="soft">
        <Time iso={at} />
      </span>
      <div>
        <strong>{who}</strong>: {title} {children}
      </div>
    </>
  )
}

function TimelineCard(props: {
  view: 'history' | 'technical'
  cursor: string | undefined
  next: string | null
  children: Child
}) {
  const { view, cursor, next, children } = props
  const link = (text: string, more: string) => (
    <p>
      <a href={`?view=${view}${more}#timeline`}>{text}</a>
    </p>
  )
  return (
    <Card
      id="timeline"
      title={t(view === 'history' ? 'story.views.history' : 'story.sections.timeline')}
      note={t('story.sections.timelineNote')}
    >
      {cursor === undefined ? null : link(t('story.sections.firstEntries'), '')}
      {children}
      {next === null
        ? null
        : link(t('story.sections.laterEntries'), `&cursor=${encodeURIComponent(next)}`)}
    </Card>
  )
}

function Entry({ words, at, id }: { words: EntryWords; at: string; id?: string }) {
  return (
    <>
      <Line {...{ at, who: t(`timeline.actors.${words.actor}`), title: words.title }} />
      {words.details.length === 0 ? null : <div class="soft">{words.details.join(' · ')}</div>}
      {words.received ? (
        <details id={id}>
          <summary>{t('timeline.received')}</summary>
          <pre>{words.received}</pre>
        </details>
      ) : null}
    </>
  )
}

export function Timeline({ technical, shown, cursor }: Props & { technical: Technical }) {
  const { data, nextCursor: next } = technical.timeline
  const describe = (entry: TimelineEntry) => describeEntry(entry, shown.currency)
  return (
    <TimelineCard {...{ cursor, next, view: 'technical' }}>
      <ol class="timeline">
        {data.map((entry, at) => (
          <li>
            <Entry words={describe(entry)} at={entry.at} id={`entry-${at}`} />
          </li>
        ))}
      </ol>
    </TimelineCard>
  )
}

export function RawFigures({ shown }: { shown: TransactionView }) {
  return (
    <Card title={t('story.sections.raw')} note={t('story.sections.rawNote')}>
      <details id="raw">
        <summary>{t('story.sections.raw')}</summary>
        <pre data-copy>{JSON.stringify(shown, null, 2)}</pre>
      </details>
    </Card>
  )
}

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

function moment(title: 'sent' | 'next', value: (row: SentEvent) => string | null) {
  return cell<SentEvent>(title, (row) => {
    const at = value(row)
    return at === null ? t('story.webhook.none') : <Time iso={toIso(at)} />
  })
}

/** Of an endpoint's address only the host is shown: the rest may hold a secret. */
function nameHost(url: string | null): string {
  return url === null
    ? t('story.webhook.deleted')
    : (URL.parse(url)?.host ?? t('story.webhook.none'))
}

export function Webhooks({ webhooks }: { webhooks: readonly SentEvent[] }) {
  const title = t('story.sections.webhooks')
  return (
    <Card title={title} note={t('story.sections.webhooksNote')}>
      <Rows
        {...{ caption: title, columns: WEBHOOKS, rows: webhooks }}
        empty={t('story.sections.noWebhooks')}
      />
    </Card>
  )
}
