import { Card, DataTable } from '../../platform/html/components.tsx'
import { toIso } from '../../platform/postgres/row-set.ts'
import { STATES } from '../../refunds/lifecycle.ts'
import type { TransactionWithPayments } from '../../transactions/types.ts'
import { Time } from '../cells.tsx'
import { formatMoney } from '../format-money.ts'
import { storyPath } from '../paths.ts'
import { PaymentStatus, RefundStatus, TransactionState } from '../states.tsx'
import { t } from '../view.ts'
import { pathOf } from './choose-target.ts'
import type { Hit } from './find-hits.ts'

/** What was found, grouped by kind. */
export function Results({ hits }: { hits: readonly Hit[] }) {
  const kinds = ['transaction', 'payment', 'refund'] as const
  return (
    <>
      {kinds.map((kind) => (
        <Group title={t(`search.groups.${kind}`)} hits={hits.filter(({ type }) => type === kind)} />
      ))}
    </>
  )
}

function Group({ title, hits }: { title: string; hits: readonly Hit[] }) {
  if (hits.length === 0) return null
  return (
    <Card title={title} note={hits.length}>
      <DataTable
        caption={title}
        columns={[
          { title: t('field.id') },
          { title: t('field.matched') },
          { title: t('field.state') },
          { title: t('field.amount'), kind: 'number' },
          { title: t('field.order') },
          { title: t('field.account') },
          { title: t('field.time') },
        ]}
        rows={hits.map((hit) => [
          <a href={pathOf(hit)}>{hit.id}</a>,
          t(`search.matched.${hit.matched}`),
          <HitState hit={hit} />,
          formatMoney(amountOf(hit), hit.of.currency),
          hit.of.orderId ?? '',
          hit.merchantCode,
          <Time iso={hit.at} />,
        ])}
      />
    </Card>
  )
}

function HitState({ hit: { of, payment, refund } }: { hit: Hit }) {
  if (refund) {
    return <RefundStatus status={STATES[refund.status].shown} />
  }
  return payment ? <PaymentStatus status={payment.status} /> : <TransactionState state={of.state} />
}

function amountOf({ of, payment, refund }: Hit): string {
  return (refund ?? payment)?.amount ?? of.paidAmount
}

/**
 * The newest transactions: where work begins.
 * @param isShortened older ones may fit the filter as well
 */
export function Newest(props: { rows: readonly TransactionWithPayments[]; isShortened: boolean }) {
  const { rows, isShortened } = props
  return (
    <Card title={t('search.newest')}>
      {isShortened ? <p>{t('search.shortened')}</p> : null}
      {rows.length === 0 ? (
        isShortened ? null : (
          <p>{t('search.nothingYet')}</p>
        )
      ) : (
        <DataTable
          caption={t('search.newest')}
          columns={[
            { title: t('field.id') },
            { title: t('field.state') },
            { title: t('field.amount'), kind: 'number' },
            { title: t('field.order') },
            { title: t('field.account') },
            { title: t('field.time') },
          ]}
          rows={rows.map(({ transaction: t }) => [
            <a href={storyPath(t)}>{t.transactionId}</a>,
            <TransactionState state={t.state} />,
            formatMoney(t.paidAmount, t.currency),
            t.orderId ?? '',
            t.merchantCode,
            <Time iso={toIso(t.firstSeenAt)} />,
          ])}
        />
      )}
    </Card>
  )
}
