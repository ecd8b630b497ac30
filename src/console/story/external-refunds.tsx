import { Card, DataTable, Identifier, Time } from '../../platform/html/components.tsx'
import { type ExternalRecord, showExternalRefund } from '../../refunds/external-view.ts'
import { formatMoney } from '../format-money.ts'
import { ExternalRefundState } from '../states.tsx'
import { TEXTS } from '../texts/en.ts'

const { sections, columns, paymentFacts } = TEXTS.story
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
