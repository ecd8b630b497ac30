import type { Context } from '../context.ts'
import type { Tx } from '../db/client.ts'
import { type Recorded, tellDiscrepancies } from '../discrepancies/record.ts'
import { recordEvents } from '../events/record.ts'
import type { Change, TransactionKey } from '../payments/apply.ts'
import { tellPayments } from '../payments/tell.ts'
import type { RefundRecord } from '../refunds/find.ts'
import { looksDifferent, type RefundWork } from '../refunds/rows.ts'
import { readRefunds, tellRefund } from '../refunds/tell.ts'
import { readTransactions, type TransactionWithPayments, writeKey } from '../transactions/find.ts'
import { tellTransaction } from '../transactions/tell.ts'

/** What a settling commit changes of a transaction, as far as somebody who follows is told. */
export type News = {
  claim: TransactionKey
  /** What the gateway's answer changed of its payments. */
  changes: readonly Change[]
  turnsFinal: boolean
  works: readonly RefundWork[]
}

/** What there is to tell of, as the commit leaves it. */
export type Shown = {
  transactions: Map<string, TransactionWithPayments>
  refunds: RefundRecord[]
}

/** Sent after everything that writes of it; asks nothing when nothing has changed. */
export async function readShown(tx: Tx, news: readonly News[]): Promise<Shown> {
  const changed = news.filter(({ changes, turnsFinal }) => changes.length > 0 || turnsFinal)
  const [transactions, ...refunds] = await Promise.all([
    readTransactions(
      tx,
      changed.map(({ claim }) => claim),
    ),
    ...news.map(({ claim, works }) =>
      readRefunds(
        tx,
        claim.merchantCode,
        works.filter(looksDifferent).map(({ now }) => now.refundId),
      ),
    ),
  ])
  return { transactions, refunds: refunds.flat() }
}

/**
 * Records the events of a settling commit, as its last statement.
 * @param shown from `readShown`
 * @param abandoned claims that ended so: seldom, so only then they are read
 */
export async function tellNews(
  ctx: Context,
  tx: Tx,
  news: readonly News[],
  { transactions, refunds }: Shown,
  { found, abandoned }: { found: readonly Recorded[]; abandoned: readonly TransactionKey[] },
): Promise<void> {
  const of = (claim: TransactionKey) => transactions.get(writeKey(claim))
  const payments = news.flatMap(({ claim, changes }) => {
    const known = of(claim)
    if (!known) return []
    const { currency } = known.transaction
    return tellPayments(
      changes,
      known.payments.map((payment) => ({ ...payment, currency })),
    )
  })
  const finals = news.flatMap(({ claim, turnsFinal }) => (turnsFinal ? (of(claim) ?? []) : []))
  const givenUp = await readTransactions(tx, abandoned)
  await recordEvents(tx, [
    ...payments,
    ...refunds.map((one) => tellRefund(ctx.sealer, one.refund, 'refund.updated', one)),
    ...tellDiscrepancies(found),
    ...finals.map((one) => tellTransaction('transaction.final', one)),
    ...[...givenUp.values()].map((one) => tellTransaction('sync.abandoned', one)),
  ])
}
