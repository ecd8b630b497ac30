import { Card, DataTable, Time } from '../../platform/html/components.tsx'
import { toIso } from '../../platform/postgres/row-set.ts'
import type { TransactionWithPayments } from '../../transactions/types.ts'
import { formatMoney } from '../format-money.ts'
import { storyPath } from '../paths.ts'
import { TransactionState } from '../states.tsx'
import { TEXTS } from '../texts/en.ts'

const { sections, columns } = TEXTS.story

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
