import type { Context } from '../context.ts'
import { EVENTS_PUBLISHED, SYNC_DUE } from '../db/names.ts'
import {
  NO_WORKER,
  readAges,
  UNSEEN_MS,
  WORKER_UNSEEN_MS,
  WRITE_GAP_MS,
  writeSeen,
} from '../db/processes.ts'
import { byTransaction, selectKeys, type TransactionKey } from '../db/transaction-key.ts'
import { notify } from '../platform/postgres/notify.ts'
import { runInTransaction } from '../platform/postgres/transaction.ts'
import type { Sql, Tx } from '../platform/postgres/types.ts'
import { leaseMs } from '../sync/claim-due.ts'

type OwnProcess = Pick<Context, 'db' | 'log' | 'config' | 'lifecycle'>

/**
 * Creates the pass that records that this process lives. One that only serves HTTP warns once if no worker lives. When
 * it last saw one it has to remember, because a worker that stops leaves no row.
 */
export function createPresence(ctx: OwnProcess): () => Promise<void> {
  const { lifecycle, log } = ctx
  let seenAt = Number.NEGATIVE_INFINITY
  return async () => {
    await writeSeen(ctx)
    if (ctx.config.ROLE !== 'web') return
    const { worker, own } = await readAges(ctx)
    const now = performance.now()
    // The database's clock may have gone back since the worker was seen.
    seenAt = Math.max(seenAt, now - Math.max(0, worker))
    const isUnseen = now - seenAt >= WORKER_UNSEEN_MS
    if (isUnseen === lifecycle.isWithoutWorker || (isUnseen && own < WORKER_UNSEEN_MS)) return
    lifecycle.isWithoutWorker = isUnseen
    if (isUnseen) log.warn(NO_WORKER)
    else log.info('a worker is seen again')
  }
}

/**
 * Releases the transactions and endpoints claimed by processes that were not seen for `UNSEEN_MS`.
 *
 * Such a process may still be alive, paused or cut off. Without its lease none of its commits writes anything, but
 * nothing stops the call of a refund whose attempt it has recorded. So a transaction with a refund that may be sent,
 * or is being sent, keeps its lease. A statement of its own looks that up under the lock of the transaction's row,
 * which is also held when refunds are requested and attempts recorded. While the database takes no writes, no process
 * counts as dead: this process must have written during all that time.
 */
export async function releaseUnseen(ctx: OwnProcess): Promise<number> {
  const { sql } = ctx.db
  const released = await runInTransaction(sql, async (tx) => {
    const held = await lockUnseen(tx, ctx)
    return held.length > 0 ? await releaseTransactions(tx, held) : 0
  })
  const endpoints = await releaseEndpoints(ctx)
  if (released > 0) notify(sql, SYNC_DUE)
  if (endpoints > 0) notify(sql, EVENTS_PUBLISHED)
  if (released + endpoints > 0) {
    const counts = { transactions: released, endpoints }
    ctx.log.warn(counts, 'a process has not been seen for 12 s; what it had claimed is due again')
  }
  return released
}

/** Selects unseen processes as `dead`, or none while this process could not write. Long dead ones hold no lease. */
function selectDead(sql: Sql | Tx, { config, lifecycle }: OwnProcess) {
  const ms = (value: number) => sql`${value} * interval '1 millisecond'`
  const longest = UNSEEN_MS + 2 * leaseMs(config.GATEWAY_TIMEOUT_MS)
  return sql`(
    select dead.id from processes as dead cross join processes as own
    where dead.seen_at < now() - ${ms(UNSEEN_MS)} and dead.seen_at > now() - ${ms(longest)}
      and own.id = ${lifecycle.processId} and own.seen_at > now() - ${ms(WRITE_GAP_MS)}
      and own.writing_since <= now() - ${ms(UNSEEN_MS)}) as dead`
}

async function lockUnseen(tx: Tx, ctx: OwnProcess) {
  return await tx<TransactionKey[]>`
    select t.merchant_code as "merchantCode", t.transaction_id as "transactionId"
    from ${selectDead(tx, ctx)} cross join merchant_accounts as a cross join lateral (
      select merchant_code, transaction_id from transactions as t
      where t.merchant_code = a.merchant_code and t.due_at > now()
        and t.due_at <= now() + ${leaseMs(ctx.config.GATEWAY_TIMEOUT_MS)} * interval '1 millisecond'
        and t.lease_id is not null and t.lease_owner = dead.id
      order by t.due_at for update skip locked) as t`
}

async function releaseTransactions(tx: Tx, held: readonly TransactionKey[]): Promise<number> {
  const { count } = await tx`
    update transactions as t set lease_id = null, due_at = now()
    from (
      select place from ${selectKeys(tx, held)} cross join lateral (
        select ctid as place from transactions as o where ${tx.unsafe(byTransaction('o'))} limit 1) as o
      where not exists (select from (
          select status from refunds as r where ${tx.unsafe(byTransaction('r'))} offset 0) as r
        where status in ('awaiting_approval', 'pending', 'sending', 'unknown'))
    ) as s
    where t.ctid = s.place`
  return count
}

async function releaseEndpoints(ctx: OwnProcess): Promise<number> {
  const { count } = await ctx.db.sql`
    with held as materialized (
      select e.id from ${selectDead(ctx.db.sql, ctx)} join webhook_endpoints as e on e.lease_owner = dead.id
      for update of e skip locked)
    update webhook_endpoints as e set lease_id = null, lease_owner = null, due_at = now()
    from held where e.id = held.id`
  return count
}
