import { EXPIRING_SOON } from '../access/keys.ts'
import type { Context } from '../context.ts'
import { SYNC_DUE } from '../db/names.ts'
import { byTransaction, type TransactionKey } from '../db/transaction-key.ts'
import { lockTransaction, recheckTransaction } from '../decisions/unit-of-work.ts'
import { CLOCK } from '../platform/postgres/clock.ts'
import { notify } from '../platform/postgres/notify.ts'
import { toIso } from '../platform/postgres/row-set.ts'
import { runInTransaction } from '../platform/postgres/transaction.ts'
import type { Sql } from '../platform/postgres/types.ts'
import { noteOutage } from '../platform/telemetry/outage-log.ts'
import { leaseMs } from '../sync/claim-due.ts'
import { checkOrder } from '../transactions/check-order.ts'
import { makeDue } from '../transactions/due.ts'
import { CLI } from '../version.ts'

const ORDERS = 100

/** Checks the orders that a process left unchecked when it stopped after a commit. One failure leaves the others. */
export async function checkOrders(ctx: Pick<Context, 'db' | 'log' | 'metrics'>): Promise<number> {
  const due = await ctx.db.sql<TransactionKey[]>`
    select merchant_code as "merchantCode", transaction_id as "transactionId" from transactions
    where order_check_due limit ${ORDERS}`
  for (const key of due) {
    await checkOrder(ctx, key).catch((err) => {
      const what = 'the transactions of an order could not be checked; it is tried again'
      if (!noteOutage(ctx.log, err, 'rounds')) ctx.log.error({ err, ...key }, what)
    })
  }
  return due.length
}

const BATCH = 500

/**
 * Deletes transactions, with their calls, that were only ever asked for, such as mistyped ids, and not since
 * `SYNC_REPOLL_FOR_MS`. One that was not queried yet, or is being queried, stays.
 */
export async function forgetUnconfirmed({
  db: { sql },
  config,
  log,
}: Pick<Context, 'db' | 'config' | 'log'>): Promise<number> {
  const forgotten = await sql<TransactionKey[]>`
    with picked as materialized (
      select merchant_code, transaction_id from transactions
      where unconfirmed and asked_for_at < now() - ${config.SYNC_REPOLL_FOR_MS} * interval '1 millisecond'
        and lease_id is null and queried_at is not null
      order by asked_for_at limit ${BATCH} for update skip locked
    ), calls as (
      delete from gateway_calls as c using picked as p cross join lateral (
        select id from gateway_calls as g where ${sql.unsafe(byTransaction('g', 'p'))} offset 0) as g
      where c.id = g.id
    )
    delete from transactions as t using picked as p
    where t.merchant_code = p.merchant_code and t.transaction_id = p.transaction_id
    returning t.merchant_code as "merchantCode", t.transaction_id as "transactionId"`
  const what = 'transaction forgotten: it was only ever asked for, and the gateway does not know it'
  for (const key of forgotten) log.info(key, what)
  return forgotten.length
}

/** A younger notification is probably still being handled (ms). */
const MIN_AGE_MS = 5_000

/**
 * Makes transactions due whose refund notifications were not handled. Neither the intake nor the commit that first
 * stores a payment sees a notification that arrives during that commit.
 */
export async function requeueUnhandled({ db: { sql } }: Pick<Context, 'db'>): Promise<number> {
  const [row] = await sql<{ requeued: number }[]>`
    with unhandled as (
      select distinct p.merchant_code, p.transaction_id
      from ipn_events e join payments p using (merchant_code, payment_id)
        join transactions t on t.merchant_code = p.merchant_code and t.transaction_id = p.transaction_id
      where e.kind = 'refund' and e.handled_at is null and t.due_at is null
        and e.last_received_at < now() - ${MIN_AGE_MS} * interval '1 millisecond'
      limit ${BATCH}
    ), due as (
      update transactions t set ${makeDue(sql)} from unhandled u, ${sql.unsafe(CLOCK)}
      where t.merchant_code = u.merchant_code and t.transaction_id = u.transaction_id
        and t.due_at is null
      returning t.transaction_id
    )
    select count(*) as requeued from due`
  const requeued = row?.requeued ?? 0
  if (requeued > 0) notify(sql, SYNC_DUE)
  return requeued
}

/** Longer than any lease or pause of a webhook endpoint, and than the calls of an account ever use up its rate in advance (ms). */
const LONGEST_AHEAD_MS = 120_000

const RESENDS_FORBIDDEN =
  "the database's clock has gone back: refunds that were sent before and have no answer are not sent again; queries, notifications or a person decide about them"

/**
 * Makes due what would wait because the database's clock went back, as after a failover to a slower server. A process
 * that starts does so before it updates `installation.seen_at`: where all were stopped, nothing else shows it.
 */
export async function followClock(ctx: Pick<Context, 'db' | 'config' | 'log'>): Promise<void> {
  const { sql } = ctx.db
  const latest = sql`now() + ${LONGEST_AHEAD_MS} * interval '1 millisecond'`
  await sql`update merchant_accounts set paid_until = now() where paid_until > ${latest}`
  await sql`update webhook_endpoints set due_at = now() where due_at > ${latest}`
  const { now, hasGoneBack, wasSentAhead } = await readClock(sql)
  const transactions = hasGoneBack ? await shortenLeases(ctx, now) : 0
  const refunds = hasGoneBack || wasSentAhead ? await forbidResends(ctx, now, hasGoneBack) : 0
  if (refunds > 0) ctx.log.warn({ refunds }, RESENDS_FORBIDDEN)
  if (!hasGoneBack) return
  // `seen_at` comes last: if this process stops before, another one repeats it all.
  await sql`update processes set writing_since = now() where writing_since > now()`
  await sql`update processes set seen_at = now() where seen_at > now()`
  ctx.log.warn(
    { transactions },
    "the database's clock has gone back; what was claimed before is due again in the usual time",
  )
}

type Clock = { now: string; hasGoneBack: boolean; wasSentAhead: boolean }

/**
 * Reads the clock that dates what is written, and whether processes were seen, or refunds first sent, later than now. On
 * Citus it is the coordinator's, and `now()` in a query of tables is the worker's. What is compared with the clock is
 * read before it: what is dated in between would seem to be ahead.
 */
async function readClock(sql: Sql): Promise<Clock> {
  const [newest] = await sql<{ seen: string | null; sent: string | null }[]>`
    select (
        select max(seen_at) from (
          select seen_at from processes union all select seen_at from installation) as p)::text as seen, (
        select max(first_sent_at) from refunds where status in ('sending', 'unknown'))::text as sent`
  const [row] = await sql<Clock[]>`
    select now::text, coalesce(${newest?.seen ?? null}::timestamptz > latest, false) as "hasGoneBack",
      coalesce(${newest?.sent ?? null}::timestamptz > latest, false) as "wasSentAhead"
    from (
      select now, now + interval '1 second' as latest from (select clock_timestamp() as now) as c) as clock`
  if (!row) throw new Error('the database has not told its time')
  return row
}

/**
 * Lets a lease that is dated ahead begin now, for as long as its owner claimed it: the owner's `GATEWAY_TIMEOUT_MS` may
 * be longer than that of this process. It began before, so the owner, which measures it by itself, no longer relies on
 * it when it ends.
 */
async function shortenLeases(
  { db: { sql }, config }: Pick<Context, 'db' | 'config'>,
  now: string,
): Promise<number> {
  const usualMs = leaseMs(config.GATEWAY_TIMEOUT_MS)
  const end = sql`${now}::timestamptz + ${usualMs} * interval '1 millisecond'`
  const ahead = await sql<(TransactionKey & { leaseId: string; claimedForMs: number })[]>`
    select t.merchant_code as "merchantCode", t.transaction_id as "transactionId", t.lease_id as "leaseId",
      (extract(epoch from t.due_at - t.queried_at) * 1000)::float8 as "claimedForMs"
    from merchant_accounts as a cross join lateral (
      select merchant_code, transaction_id, lease_id, due_at, queried_at from transactions as t
      where t.merchant_code = a.merchant_code and t.due_at > ${end} and t.queried_at > ${now}::timestamptz and t.lease_id is not null
      order by t.due_at) as t`
  // One by one: a statement that waits for a row while it holds others could deadlock with a commit. `now` is older by
  // then: a lease that is dated by it would end too early.
  for (const { merchantCode, transactionId, leaseId, claimedForMs } of ahead) {
    const leftMs = Math.max(usualMs, claimedForMs)
    await sql`
      update transactions set queried_at = now(), due_at = now() + ${leftMs} * interval '1 millisecond'
      where merchant_code = ${merchantCode} and transaction_id = ${transactionId} and lease_id = ${leaseId}`
  }
  return ahead.length
}

/**
 * Dates the first attempt of each refund that might be sent again to 1970, so that it never is: by a clock that was
 * ahead, nobody can say how long ago it was. It is queried at once, since its next check may be dated ahead as well,
 * and a person may decide as if it was sent now. Returns how many there are.
 * @param hasGoneBack whether the clock has just gone back, so that what was sent at any time may be dated ahead;
 *   otherwise only what is later than now is
 */
async function forbidResends(
  { db: { sql } }: Pick<Context, 'db'>,
  now: string,
  hasGoneBack: boolean,
): Promise<number> {
  const isAhead = hasGoneBack
    ? sql`first_sent_at > 'epoch'`
    : sql`first_sent_at > ${now}::timestamptz + interval '1 second'`
  const isOne = sql`status in ('sending', 'unknown') and ${isAhead}`
  const keys = await sql<TransactionKey[]>`
    select distinct merchant_code as "merchantCode", transaction_id as "transactionId" from refunds
    where ${isOne} order by 1, 2`
  let refunds = 0
  for (const key of keys) {
    refunds += await runInTransaction(sql, async (tx) => {
      await lockTransaction(tx, key)
      const { count } = await tx`
        update refunds set first_sent_at = 'epoch', updated_at = clock.at,
          due_at = case when status = 'unknown' then clock.at else due_at end
        from ${tx.unsafe(CLOCK)}
        where merchant_code = ${key.merchantCode} and transaction_id = ${key.transactionId} and ${isOne}`
      if (count > 0) await recheckTransaction(tx, key)
      return count
    })
  }
  return refunds
}

/** Warns of each API key that ends soon and has no successor. */
export async function warnOfExpiry({ db, log }: Pick<Context, 'db' | 'log'>): Promise<void> {
  const keys = await db.sql<{ keyId: string; name: string; expiresAt: string }[]>`
    select id as "keyId", name, expires_at as "expiresAt" from actors as k
    where ${db.sql.unsafe(EXPIRING_SOON)} order by expires_at, id`
  for (const { keyId, name, expiresAt } of keys) {
    const what = `an API key ends soon: replace it with: ${CLI} keys rotate ${keyId}`
    log.warn({ keyId, name, expiresAt: toIso(expiresAt) }, what)
  }
}
