import { listMerchantCodes } from '../accounts/merchant-codes.ts'
import type { Context } from '../context.ts'
import { SYNC_DUE } from '../db/names.ts'
import type { TransactionKey } from '../db/transaction-key.ts'
import type { RecordedDiscrepancy } from '../discrepancies/kinds.ts'
import { buildDiscrepancyEvents, logDiscrepancies } from '../discrepancies/store.ts'
import { recordEvents } from '../events/record-events.ts'
import { byKey } from '../platform/postgres/by-key.ts'
import { notifyAfterCommit } from '../platform/postgres/notify.ts'
import { runInTransaction } from '../platform/postgres/transaction.ts'
import type { Tx } from '../platform/postgres/types.ts'
import { looksDifferent } from '../refunds/draft.ts'
import { buildUpdatedEvents, readExternalEvents } from '../refunds/events.ts'
import { isUnendedSql } from '../refunds/lifecycle.ts'
import { type RefundsContext, reconcileRefunds } from '../refunds/reconcile.ts'
import { makeDue, notifyTransactionChanged } from '../transactions/due.ts'

/** Transactions per round: each has a commit of its own. */
const BATCH = 100

type UnqueriedContext = RefundsContext & Pick<Context, 'sql' | 'metrics'>

/**
 * Applies the deadlines of refunds that no query's commit applies: those that nobody approved within
 * `REFUND_APPROVAL_WITHIN_MS`, pending ones that were not sent within `REFUND_SEND_WITHIN_MS` while calls to the gateway are
 * paused, and all that are due of an account that is no longer configured. Their notifications, and attempts whose lease
 * has ended, are handled before.
 * @returns the number of transactions with such refunds
 */
export async function reconcileUnqueried(ctx: UnqueriedContext): Promise<number> {
  const { REFUND_SEND_WITHIN_MS: withinMs, REFUND_APPROVAL_WITHIN_MS: approvalMs } = ctx.config
  const keys = await ctx.sql<TransactionKey[]>`
    select distinct merchant_code as "merchantCode", transaction_id as "transactionId" from refunds
    where ${ctx.sql.unsafe(isUnendedSql('refunds'))} and (
      (status = 'pending' and coalesce(approved_at, requested_at) <= now() - ${withinMs}::float8 * interval '1 millisecond')
      or (status = 'awaiting_approval' and requested_at <= now() - ${approvalMs}::float8 * interval '1 millisecond')
      or (due_at <= now() and merchant_code <> all(${listMerchantCodes(ctx.config)})))
    limit ${BATCH}`
  for (const key of keys) {
    const found = await runInTransaction(ctx.sql, (tx) => reconcileOne(ctx, tx, key))
    logDiscrepancies(ctx, found)
  }
  return keys.length
}

/** A transaction that a worker has claimed is left to it: its commit does the same. */
async function reconcileOne(
  ctx: UnqueriedContext,
  tx: Tx,
  key: TransactionKey,
): Promise<RecordedDiscrepancy[]> {
  const { merchantCode, transactionId } = key
  const free = await tx`
    select from (
      select ${merchantCode}::text as merchant_code, ${transactionId}::text as transaction_id
    ) as k cross join lateral (
      select from transactions as t where (t.lease_id is null or t.due_at <= now())
        and ${tx.unsafe(byKey('t', ['merchant_code', 'transaction_id'], 'k'))}
      limit 1 for update skip locked) as t`
  if (free.length === 0) return []
  const unanswered = { snapshot: undefined, changed: false, answered: false }
  const { drafts, found, changed, externalChanges } = await reconcileRefunds(ctx, tx, key, {
    ...unanswered,
    sending: { pausedMs: 0 },
  })
  if (changed) {
    await tx`
      update transactions t set version = version + 1, updated_at = now(), ${makeDue(tx)}
      where merchant_code = ${merchantCode} and transaction_id = ${transactionId}`
    notifyAfterCommit(tx, SYNC_DUE)
    notifyTransactionChanged(tx, key)
  }
  const refundIds = drafts.filter(looksDifferent).map(({ now }) => now.refundId)
  await recordEvents(tx, [
    ...(await buildUpdatedEvents(ctx, tx, { merchantCode, refundIds })),
    ...(await readExternalEvents(tx, merchantCode, externalChanges)),
    ...buildDiscrepancyEvents(found),
  ])
  return found
}
