import type { DiscrepancyRow } from '../../discrepancies/types.ts'
import { showDiscrepancy } from '../../discrepancies/view.ts'
import { Card, DataTable, Time } from '../../platform/html/components.tsx'
import { describeSide, nameKind } from '../discrepancy-words.ts'
import { discrepancyPath } from '../paths.ts'
import { TEXTS } from '../texts/en.ts'

const { sections, columns, discrepancy } = TEXTS.story

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
