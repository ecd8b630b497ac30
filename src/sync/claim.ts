import type { Context } from '../context.ts'
import type { TransactionKey } from '../payments/apply.ts'
import { rateClaims, rateNext } from '../rate.ts'

/** A transaction that this process alone may ask about, until its lease ends. */
export type Claim = TransactionKey & {
  /** Proof of ownership: every write of the settling commit asks for it. */
  leaseId: string
  /** Database time of the claim, and `performance.now()` when it was known here. */
  claimedAt: string
  knownAt: number
  attempts: number
  polls: number
  askedForMs: number
  /** Some of its refunds may be under way: it is settled in a commit of its own. */
  hasRefunds: boolean
}

/** Long enough for a call to end in any way and its answer to be written (ms). */
export function leaseMs(gatewayTimeoutMs: number): number {
  return 3 * gatewayTimeoutMs + 15_000
}

/** What an account may have of a claim: `most` rows, beside the `held` ones it has call slots for. */
type Share = { merchantCode: string; most: number; held: number }

/**
 * Takes up to `limit` due transactions: turn by turn from every account that has any, where the one with
 * the fewest calls in flight comes first, and of an account the longest due first. A storm of one
 * account keeps no other waiting. Rows that another process is taking are passed over; a claim whose
 * process died is due again when its lease ends. `queried_at` and `gap_ms` space the queries of a burst:
 * the gap doubles from claim to claim, and starts anew after a quiet time.
 * `materialized` makes the limit hold: as a plain subquery the planner may run it once for every row.
 */
export async function claimDue(ctx: Context, limit: number): Promise<Claim[]> {
  const { SYNC_MIN_GAP_MS: minGap, SYNC_MAX_GAP_MS: maxGap, GATEWAY_TIMEOUT_MS } = ctx.config
  const shares = listShares(ctx, limit)
  if (shares.length === 0) return []
  const rate = rateClaims(
    ctx,
    shares.map(({ merchantCode }) => merchantCode),
  )
  const rows = await ctx.sql<Omit<Claim, 'knownAt'>[]>`
    with ${rate.paid} share as materialized (
      select merchant_code, ${rate.most} as most, held from unnest(
        ${shares.map((s) => s.merchantCode)}::text[], ${shares.map((s) => s.most)}::int[],
        ${shares.map((s) => s.held)}::int[]
      ) as s (merchant_code, most, held) ${rate.share}
    ), picked as materialized (
      select merchant_code, transaction_id from (
        select share.merchant_code, due.transaction_id, due.due_at,
          held + row_number() over (partition by share.merchant_code order by due.due_at) as turn
        from share cross join lateral (
          select transaction_id, due_at from transactions as t
          where t.merchant_code = share.merchant_code and t.due_at <= now()
          order by t.due_at limit share.most for update skip locked) as due) as queue
      order by turn, due_at limit ${limit}) ${rate.charged}
    update transactions as t set
      lease_id = gen_random_uuid(), claimed = want,
      due_at = now() + ${leaseMs(GATEWAY_TIMEOUT_MS)} * interval '1 millisecond',
      gap_ms = case when queried_at > now() - 2 * ${maxGap} * interval '1 millisecond'
        then least(greatest(gap_ms, 1) * 2, ${maxGap}) else ${minGap} end,
      queried_at = now()
    from picked
    where t.merchant_code = picked.merchant_code and t.transaction_id = picked.transaction_id
    returning t.merchant_code as "merchantCode", t.transaction_id as "transactionId",
      lease_id as "leaseId", clock_timestamp()::text as "claimedAt", attempts, polls,
      (extract(epoch from now() - asked_for_at) * 1000)::float8 as "askedForMs",
      exists (select from refunds as r where r.merchant_code = t.merchant_code
        and r.transaction_id = t.transaction_id) as "hasRefunds"`
  const knownAt = performance.now()
  return rows.map((row) => ({ ...row, knownAt }))
}

/** Gives a claim back that was not worked on to the end: it is due at once, for anybody. */
export async function releaseClaim(
  ctx: Context,
  { merchantCode, transactionId, leaseId }: Claim,
): Promise<void> {
  await ctx.sql`
    update transactions set lease_id = null, due_at = now()
    where merchant_code = ${merchantCode} and transaction_id = ${transactionId} and lease_id = ${leaseId}`
}

/**
 * How long until something is due that may be asked about (ms, at most `maxMs`); leased rows count when
 * their lease ends.
 */
export async function findNextDue(ctx: Context, maxMs: number): Promise<number> {
  const paused = ctx.config.accounts
    .map(({ merchantCode }) => ctx.breakers.of(merchantCode, 'query').waitMs())
    .filter((ms) => ms > 0)
  const open = listShares(ctx, 1).map(({ merchantCode }) => merchantCode)
  const [row] = await ctx.sql<{ inMs: number | null }[]>`
    select (extract(epoch from min(greatest(due_at, ${rateNext(ctx)})) - now()) * 1000)::float8 as "inMs"
    from unnest(${open}::text[]) as a (merchant_code) cross join lateral (
      select due_at from transactions as t
      where t.merchant_code = a.merchant_code and t.due_at is not null
      order by t.due_at limit 1) as due`
  return Math.max(0, Math.ceil(Math.min(maxMs, row?.inMs ?? maxMs, ...paused)))
}

/**
 * Only accounts whose secret is in the settings can be asked about. While queries of one pause it has
 * none, or the single one that finds out.
 */
function listShares({ config, slots, breakers }: Context, limit: number): Share[] {
  return config.accounts.flatMap(({ merchantCode }) => {
    const held = slots.countHeld(merchantCode)
    const breaker = breakers.of(merchantCode, 'query')
    if (breaker.waitMs() > 0) return []
    const cap = config.accounts.length > 1 ? slots.cap - held : limit
    const most = Math.min(limit, cap, breaker.state() === 'closed' ? limit : 1)
    return most > 0 ? [{ merchantCode, most, held }] : []
  })
}

/** Only accounts whose secret is in the settings can be asked about. */
export function listAccounts(ctx: Context): string[] {
  return ctx.config.accounts.map(({ merchantCode }) => merchantCode)
}
