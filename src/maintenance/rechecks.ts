import { listMerchantCodes } from '../accounts/merchant-codes.ts'
import type { Context } from '../context.ts'
import { SYNC_DUE } from '../db/names.ts'
import { isUnendedSql } from '../db/schema.ts'
import { byTransaction, type TransactionKey } from '../db/transaction-key.ts'
import { recheckTransaction } from '../decisions/unit-of-work.ts'
import type { NewDiscrepancy, RecordedDiscrepancy } from '../discrepancies/kinds.ts'
import {
  buildDiscrepancyEvents,
  logDiscrepancies,
  recordDiscrepancies,
} from '../discrepancies/store.ts'
import { recordEvents } from '../events/record-events.ts'
import { CLOCK } from '../platform/postgres/clock.ts'
import { notifyAfterCommit } from '../platform/postgres/notify.ts'
import { runInTransaction } from '../platform/postgres/transaction.ts'
import type { Tx } from '../platform/postgres/types.ts'
import { buildUpdatedEvents, readExternalEvents } from '../refunds/events.ts'
import { type RefundsContext, reconcileRefunds } from '../refunds/reconcile.ts'
import { looksDifferent } from '../refunds/save.ts'
import { makeDue, selectKey } from '../transactions/due.ts'

/** Due transactions beyond which no final ones are added, so that new ones are not delayed. */
const MAX_DUE = 100

/**
 * Makes transactions due once more that became final or were abandoned `RECONCILE_FINAL_FOR_MS` ago: the gateway may
 * have changed its answer without a notification. Final ones without any notification are recorded as `ipn_missing`.
 * @returns the number of transactions made due
 */
export async function recheckFinal(ctx: Context): Promise<number> {
  const accounts = listMerchantCodes(ctx.config)
  const { due, found } = await runInTransaction(ctx.db.sql, async (tx) => {
    const rows = await tx<Rechecked[]>`
      with waiting as materialized (
        select count(*) as n from (select from transactions
          where due_at <= now() and merchant_code = any(${accounts}) limit ${MAX_DUE}) as w
      ), picked as materialized (
        select merchant_code, transaction_id from transactions
        where reconcile_at <= now() and reconcile_at < 'infinity' and merchant_code = any(${accounts})
        order by reconcile_at limit greatest(0, ${MAX_DUE} - (select n from waiting))
        for update skip locked
      )
      update transactions t set ${makeDue(ctx.db.sql)},
        reconcile_at = case when t.final then null else 'infinity'::timestamptz end
      from picked p, ${tx.unsafe(CLOCK)}
      where t.merchant_code = p.merchant_code and t.transaction_id = p.transaction_id
      returning t.merchant_code as "merchantCode", t.transaction_id as "transactionId", t.state,
        t.final and t.ipn_count = 0 as unnotified`
    if (rows.length > 0) notifyAfterCommit(tx, SYNC_DUE)
    const unnotified = rows.filter((row) => row.unnotified)
    const found = await recordDiscrepancies(tx, unnotified.map(describeUnnotified))
    await recordEvents(tx, buildDiscrepancyEvents(found))
    return { due: rows.length, found }
  })
  logDiscrepancies(ctx, found)
  return due
}

type Rechecked = TransactionKey & { state: string; unnotified: boolean }

function describeUnnotified({ merchantCode, transactionId, state }: Rechecked): NewDiscrepancy {
  const ours = `state ${state}, known by a request to sync`
  return { merchantCode, transactionId, kind: 'ipn_missing', ours, theirs: 'no notification' }
}

type UnqueriedContext = RefundsContext & Pick<Context, 'db' | 'metrics'>

const BATCH = 100

/**
 * Applies the deadlines of refunds that no query's commit reaches: those not approved or not sent in time, and all
 * due ones of accounts that are no longer configured. One failure leaves the others.
 * @returns the number of transactions with such refunds
 * @throws the first failure, after all transactions have had their turn
 */
export async function reconcileUnqueried(ctx: UnqueriedContext): Promise<number> {
  const { REFUND_SEND_WITHIN_MS: withinMs, REFUND_APPROVAL_WITHIN_MS: approvalMs } = ctx.config
  // Each kind has its share of the round, so that many refunds of removed accounts do not delay expired approvals.
  const keys = await ctx.db.sql<TransactionKey[]>`
    (select merchant_code as "merchantCode", transaction_id as "transactionId" from refunds
    where ${ctx.db.sql.unsafe(isUnendedSql('refunds'))} and (
      (status = 'pending' and coalesce(approved_at, requested_at) <= now() - ${withinMs}::float8 * interval '1 millisecond')
      or (status = 'awaiting_approval' and requested_at <= now() - ${approvalMs}::float8 * interval '1 millisecond'))
    limit ${BATCH})
    union
    (select merchant_code, transaction_id from refunds
    where ${ctx.db.sql.unsafe(isUnendedSql('refunds'))} and due_at <= now()
      and merchant_code <> all(${listMerchantCodes(ctx.config)})
    limit ${BATCH})`
  const failures: unknown[] = []
  for (const key of keys) {
    try {
      const found = await runInTransaction(ctx.db.sql, (tx) => reconcileOne(ctx, tx, key))
      logDiscrepancies(ctx, found)
    } catch (error) {
      failures.push(error)
    }
  }
  if (failures.length > 0) throw failures[0]
  return keys.length
}

/** Leaves a claimed transaction to its worker, whose commit does the same. */
async function reconcileOne(
  ctx: UnqueriedContext,
  tx: Tx,
  key: TransactionKey,
): Promise<RecordedDiscrepancy[]> {
  const { merchantCode } = key
  const free = await tx`
    select from ${selectKey(tx, key)} cross join lateral (
      select from transactions as t
      where (t.lease_id is null or t.due_at <= now()) and ${tx.unsafe(byTransaction('t'))}
      limit 1 for update skip locked) as t`
  if (free.length === 0) return []
  const input = { snapshot: undefined, answered: false, sending: { pausedMs: 0 } }
  const { drafts, found, changed, externalChanges } = await reconcileRefunds(ctx, tx, key, input)
  if (changed) await recheckTransaction(tx, key)
  const refundIds = drafts.filter(looksDifferent).map(({ now }) => now.refundId)
  await recordEvents(tx, [
    ...(await buildUpdatedEvents(ctx, tx, { merchantCode, refundIds })),
    ...(await readExternalEvents(tx, merchantCode, externalChanges)),
    ...buildDiscrepancyEvents(found),
  ])
  return found
}
