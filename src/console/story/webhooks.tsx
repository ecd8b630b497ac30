import { Card, DataTable, Time } from '../../platform/html/components.tsx'
import { toIso } from '../../platform/postgres/row-set.ts'
import type { SentEvent } from '../../webhooks/list-sent.ts'
import { TEXTS } from '../texts/en.ts'

const { sections, columns, webhook } = TEXTS.story

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
