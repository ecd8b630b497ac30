import type { Child } from 'hono/jsx'
import { Card, Facts } from '../platform/html/components.tsx'
import { toIso } from '../platform/postgres/row-set.ts'
import type { ReceivedMessage } from '../transactions/read-messages.ts'
import type { TransactionView } from '../transactions/view.ts'
import type { SentEvent } from '../webhooks/log.ts'
import type { ListedWrite } from './audit-list.ts'
import { type ListColumn, Prose, TableCard, Time, text, time } from './cells.tsx'
import { refundPagePath } from './paths.ts'
import type { History, Technical, TimelineEntry } from './story.ts'
import { describeEntry } from './timeline.ts'
import { formatMoney, t } from './view.ts'
import { nameOperation } from './words.ts'

/** Changes that only show how the service counts. */
const UNTOLD = ['amount', 'countedAmount', 'countedRefunded', 'freed', 'notification']

/** Whether an entry tells what happened, and not how it came to be known. */
function isTold(entry: TimelineEntry): boolean {
  if (entry.type === 'change') return !UNTOLD.includes(entry.field)
  return entry.type === 'discrepancy'
}

type Props = { shown: TransactionView; cursor: string | undefined }

export function HistoryParts({ history, shown, cursor }: Props & { history: History }) {
  const { timeline, writes } = history
  const told = timeline.data.filter(isTold).map((entry) => {
    return { at: entry.at, line: <Entry entry={entry} currency={shown.currency} /> }
  })
  const done = writes.map((write) => {
    return { at: write.at, line: <Write {...{ write, history, shown }} /> }
  })
  // What somebody did stands before its consequences of the same moment.
  const lines = [...done, ...told]
    .sort((one, other) => Date.parse(one.at) - Date.parse(other.at))
    .map(({ line }) => line)
  return <TimelineCard {...{ cursor, next: timeline.nextCursor, view: 'history', lines }} />
}

function Write(props: { write: ListedWrite; history: History; shown: TransactionView }) {
  const { write, history, shown } = props
  const { at, actor, operation, objectId } = write
  const ofPayment = shown.payments.some(({ id }) => id === objectId)
  const refund = history.refunds.get(objectId)?.refund
  return (
    <Line {...{ at, who: actor, title: nameOperation(operation) }}>
      {refund && (
        <a href={refundPagePath(shown.merchantCode, objectId)}>
          {t('refunds.title', { amount: formatMoney(refund.amount, shown.currency) })}
        </a>
      )}
      {ofPayment ? t('timeline.subject.payment', { id: objectId }) : null}
    </Line>
  )
}

function Line(props: { at: string; who: string; title: string; children?: Child }) {
  const { at, who, title, children } = props
  return (
    <>
      <span class="soft">
        <Time iso={at} />
      </span>
      <div>
        <strong>{who}</strong>: <Prose of={title} /> {children}
      </div>
    </>
  )
}

function TimelineCard(props: {
  view: 'history' | 'technical'
  cursor: string | undefined
  next: string | null
  lines: readonly Child[]
}) {
  const { view, cursor, next, lines } = props
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
      {cursor !== undefined && link(t('story.sections.firstEntries'), '')}
      {lines.length === 0 && <p>{t('story.sections.noHistory')}</p>}
      <ol class="timeline">
        {lines.map((line) => (
          <li>{line}</li>
        ))}
      </ol>
      {next !== null &&
        link(t('story.sections.laterEntries'), `&cursor=${encodeURIComponent(next)}`)}
    </Card>
  )
}

function Entry(props: { entry: TimelineEntry; currency: string | null; id?: string }) {
  const { entry, currency, id } = props
  const { actor, title, details, received } = describeEntry(entry, currency)
  return (
    <>
      <Line {...{ at: entry.at, who: t(`timeline.actors.${actor}`), title }} />
      {details.length > 0 && (
        <div class="soft">
          <Prose of={details.join(' · ')} />
        </div>
      )}
      {received && (
        <details id={id}>
          <summary>{t('timeline.received')}</summary>
          <pre>{received}</pre>
        </details>
      )}
    </>
  )
}

export function Timeline({ technical, shown, cursor }: Props & { technical: Technical }) {
  const { data, nextCursor: next } = technical.timeline
  const lines = data.map((entry, at) => (
    <Entry {...{ entry, currency: shown.currency, id: `entry-${at}` }} />
  ))
  return <TimelineCard {...{ cursor, next, view: 'technical', lines }} />
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
      {messages.length === 0 && <p>{t('story.sections.noMessages')}</p>}
      {messages.map(({ type, id, at, members, text: received }) => (
        <details id={`message-${type}-${id}`}>
          <summary>
            {t(`story.messages.${type}`)} · <Time iso={at} />
          </summary>
          {members && <Facts rows={members.map(({ name, value }) => [name, value])} />}
          {!members && (received ? <pre>{received}</pre> : <p>{t('story.messages.empty')}</p>)}
        </details>
      ))}
    </Card>
  )
}

const WEBHOOKS: readonly ListColumn<SentEvent>[] = [
  text('event', ({ type }) => type),
  // Only the host is shown: the rest of an address may hold a secret.
  text('endpoint', ({ url }) =>
    url === null ? t('story.webhook.deleted') : (URL.parse(url)?.host ?? t('states.none')),
  ),
  text('outcome', ({ sentAt, attempt, error, status }) => {
    if (sentAt === null) return t('story.webhook.waiting')
    return error === null
      ? t('story.webhook.delivered', { status: status ?? t('states.none') })
      : t('story.webhook.failed', { attempt, error })
  }),
  time('sent', ({ sentAt }) => sentAt && toIso(sentAt)),
  time('next', ({ nextAttemptAt }) => nextAttemptAt && toIso(nextAttemptAt)),
]

export function Webhooks({ webhooks: rows }: { webhooks: readonly SentEvent[] }) {
  return (
    <TableCard
      {...{ title: t('story.sections.webhooks'), note: t('story.sections.webhooksNote') }}
      {...{ columns: WEBHOOKS, rows, empty: t('story.sections.noWebhooks') }}
    />
  )
}
