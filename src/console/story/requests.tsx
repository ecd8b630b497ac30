import type { ListedWrite } from '../../access/list-writes.ts'
import { Card, DataTable, Identifier, Time } from '../../platform/html/components.tsx'
import { TEXTS } from '../texts/en.ts'

const { sections, columns, operations } = TEXTS.story

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
