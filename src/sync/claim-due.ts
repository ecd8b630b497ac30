import { randomUUID } from 'node:crypto'
import { limitClaims, selectNextPermit } from '../accounts/call-limit.ts'
import { byTransaction } from '../db/transaction-key.ts'
import { startTimer } from '../platform/concurrency/timing.ts'
import { rowSet } from '../platform/postgres/row-set.ts'
import { runPipelined } from '../platform/postgres/transaction.ts'
import type { Sql } from '../platform/postgres/types.ts'
import { selectKey } from '../transactions/due.ts'
import { countAheadOf } from './claim-ahead.ts'
import { lockClaimed } from './fence.ts'
import type { Claim, SyncContext } from './types.ts'

/**
 * How many unconfirmed transactions, which only a request to sync has named, may be claimed beside those that run.
 * They get at most half of the call slots, after all others that are due, but one goes first if none is in progress,
 * so that each is queried eventually.
 */
export function planUnconfirmed({ config, unconfirmedQueries: { running } }: SyncContext) {
  const most = Math.max(1, config.GATEWAY_MAX_CONCURRENCY >> 1)
  return { room: Math.max(0, most - running), isNoneRunning: running === 0 }
}

/** Long enough for a call to end in any way and for its result to be committed. */
export function leaseMs(gatewayTimeoutMs: number): number {
  return 3 * gatewayTimeoutMs + 15_000
}

/**
 * An account's share of a claim: at most `most` rows, beside the `held` ones that have call slots already. An
 * unconfirmed one may go first if `most` is at least `leadsFrom`.
 */
type ClaimShare = { merchantCode: string; most: number; held: number; leadsFrom: number }

const SHARE_COLUMNS = { merchantCode: 'text', most: 'int', held: 'int', leadsFrom: 'int' }

/**
 * Claims up to `limit` due transactions: round robin over the accounts, the one with the fewest calls in flight
 * first, and within an account the longest due first, so that a burst of one does not delay the others. Rows that
 * another process is claiming are skipped. If this process dies, a claim is due again when its lease ends, or
 * earlier if `releaseUnseen` takes it over.
 *
 * The subqueries, from the inside out:
 *
 * - `share`: how many rows each account may claim, and how many it holds
 * - `due`: the due rows of one account, locked
 * - `counted`: all of them, confirmed and unconfirmed ones numbered apart
 * - `ranked`: 0 for the one unconfirmed row that goes first, 1 for confirmed ones, 2 for the others
 * - `queue`: the turn of each, round robin over the accounts
 * - `picked`: the first of them, within the shares, each with its next gap and a lease id
 *
 * `gap_ms` spaces the queries of a burst: it doubles with every claim and is reset after a quiet time. `claimedAt`
 * is later than the stored answer, even if the clock has gone back. `materialized` enforces the limit, and rows are
 * updated where they were found: otherwise the planner may repeat the subquery or read the whole table.
 */
export async function claimDue(ctx: SyncContext, limit: number, isAhead = false): Promise<Claim[]> {
  const { SYNC_MIN_GAP_MS: minGap, SYNC_MAX_GAP_MS: maxGap, GATEWAY_TIMEOUT_MS } = ctx.config
  const shares = listShares(ctx, limit, isAhead)
  if (shares.length === 0) return []
  const { room, isNoneRunning } = planUnconfirmed(ctx)
  const codes = shares.map(({ merchantCode }) => merchantCode)
  const limits = limitClaims(ctx, codes)
  const leaseIds = Array.from({ length: limit }, () => randomUUID())
  // Started before the claim, so that this process never trusts a lease for longer than the database.
  const leaseLeftMs = startTimer(leaseMs(GATEWAY_TIMEOUT_MS))
  const rows = await ctx.db.sql<Omit<Claim, 'knownAt' | 'leaseLeftMs'>[]>`
    with claimed as (
    with ${limits.throttled} share as materialized (
      select merchant_code, ${limits.most} as most, held, leads_from
      from ${rowSet(ctx.db.sql, 's', SHARE_COLUMNS, shares)} ${limits.share}
    ), picked as materialized (
      select place, gap_ms, (${leaseIds}::uuid[])[row_number() over ()] as lease_id
      from (
        select place, case when queried_at > now() - 2 * ${maxGap} * interval '1 millisecond'
          then least(greatest(gap_ms, 1) * 2, ${maxGap}) else ${minGap} end as gap_ms
        from (
          select *,
            held + row_number() over (partition by merchant_code order by rank, due_at) as turn
          from (
            select *, case when not unconfirmed then 1
              when ${isNoneRunning}::boolean and nth = 1 and most >= leads_from then 0 else 2 end as rank
            from (
              select share.*, due.*,
                row_number() over (partition by due.unconfirmed order by due.due_at) as nth
              from share cross join lateral (${selectDue(ctx.db.sql, room)}) as due
            ) as counted
          ) as ranked
          where not unconfirmed or nth <= ${room}
        ) as queue
        where turn - held <= most
        order by rank = 2, turn, due_at limit ${limit}
      ) as chosen)
    update transactions as t set
      lease_id = picked.lease_id, lease_owner = ${ctx.lifecycle.processId}, claimed = want,
      due_at = now() + ${leaseMs(GATEWAY_TIMEOUT_MS)} * interval '1 millisecond',
      gap_ms = picked.gap_ms, queried_at = now()
    from picked
    where t.ctid = picked.place
    returning t.merchant_code, t.transaction_id, t.lease_id, attempts, polls, unconfirmed, as_of, asked_for_at,
      coalesce((select true from refunds as r where ${ctx.db.sql.unsafe(byTransaction('r', 't'))} limit 1), false) as has_refunds
    ) ${limits.consumed}
    select merchant_code as "merchantCode", transaction_id as "transactionId", lease_id as "leaseId", attempts, polls,
      unconfirmed, has_refunds as "hasRefunds",
      greatest(clock_timestamp(), as_of + interval '1 microsecond')::text as "claimedAt",
      (extract(epoch from now() - asked_for_at) * 1000)::float8 as "sinceRequestedMs"
    from claimed`
  const knownAt = performance.now()
  return rows.map((row) => ({ ...row, knownAt, leaseLeftMs }))
}

/** Selects what is due for the account in `share`: up to `most` confirmed transactions, and up to `room` others. */
function selectDue(sql: Sql, room: number) {
  const select = (isConfirmed: boolean, most: ReturnType<typeof sql>) => sql`
    select * from (
      select transaction_id, due_at, ctid as place, queried_at, gap_ms, ${!isConfirmed}::boolean as unconfirmed
      from transactions as t
      where t.merchant_code = share.merchant_code and t.due_at <= now()
        and ${isConfirmed ? sql`not t.unconfirmed` : sql`t.unconfirmed`}
      order by t.due_at limit ${most} for update skip locked) as locked`
  return sql`${select(true, sql`share.most`)} union all ${select(false, sql`least(share.most, ${room})`)}`
}

/** Releases an unfinished claim, so that the transaction is due at once for any worker. */
export async function releaseClaim({ db }: Pick<SyncContext, 'db'>, claim: Claim): Promise<void> {
  const { leaseId } = claim
  await runPipelined(db.sql, {
    // Locked by a statement of its own: an update that waited for the lock would look where the row was before.
    open: (tx) => lockClaimed(tx, [{ claim, sentAfterMs: 0 }]),
    work: async (tx, locked) => {
      const statement = tx`
        update transactions set lease_id = null, due_at = now()
        where lease_id = ${leaseId} and ctid = (select place from ${selectKey(tx, claim)} cross join lateral (
          select ctid as place from transactions as t where ${tx.unsafe(byTransaction('t'))} limit 1) as t)`
      return { value: undefined, last: locked.has(leaseId) ? () => statement : undefined }
    },
  })
}

/** How long until a transaction of an account that may be queried is due, or its lease ends (ms, at most `maxMs`). */
export async function findNextDue(ctx: SyncContext, maxMs: number): Promise<number> {
  const paused = ctx.config.accounts
    .map(({ merchantCode }) => ctx.gateway.breakers.of(merchantCode, 'query').waitMs())
    .filter((ms) => ms > 0)
  const open = listShares(ctx, 1).map(({ merchantCode }) => merchantCode)
  const [row] = await ctx.db.sql<{ inMs: number | null }[]>`
    select (extract(epoch from min(greatest(due_at, ${selectNextPermit(ctx)})) - now()) * 1000)::float8 as "inMs"
    from unnest(${open}::text[]) as a (merchant_code) cross join lateral (
      select due_at from transactions as t
      where t.merchant_code = a.merchant_code and t.due_at is not null
        and (${planUnconfirmed(ctx).room > 0}::boolean or not t.unconfirmed)
      order by t.due_at limit 1) as due`
  return Math.max(0, Math.ceil(Math.min(maxMs, row?.inMs ?? maxMs, ...paused)))
}

/**
 * A paused account gets nothing, and a probe one row. Of several accounts, each gets at most its free slots and what it
 * may claim ahead. An unconfirmed row, which the gateway may not answer, is a probe only if nothing else is due, and
 * takes the only row of a share in turn with confirmed ones: by chance, because each process decides for itself.
 */
function listShares(ctx: SyncContext, limit: number, isAhead = false): ClaimShare[] {
  const { config, callSlots, gateway } = ctx
  return config.accounts.flatMap(({ merchantCode }) => {
    const breaker = gateway.breakers.of(merchantCode, 'query')
    if (breaker.waitMs() > 0) return []
    const isClosed = breaker.state() === 'closed'
    const cap = isClosed ? limit : 1
    const ahead = isAhead ? countAheadOf(ctx, merchantCode) : 0
    const room = config.accounts.length > 1 ? callSlots.free(merchantCode) + ahead : limit
    const most = Math.min(cap, room)
    const held = callSlots.held(merchantCode) + callSlots.waiting(merchantCode)
    const leadsFrom = isClosed && Math.random() < 0.5 ? 1 : 2
    return most > 0 ? [{ merchantCode, most, held, leadsFrom }] : []
  })
}
