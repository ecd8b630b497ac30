import type { Config } from '../config/config.ts'
import type { Database } from '../db/client.ts'
import { byTransaction } from '../db/transaction-key.ts'
import type { Sql } from '../platform/postgres/types.ts'

type CallLimitContext = {
  db: Pick<Database, 'sql'>
  config: Pick<Config, 'GATEWAY_RATE_PER_S'>
}

/**
 * `GATEWAY_RATE_PER_S` limits the gateway calls per second and account, over all processes (GCRA). Each call moves
 * `merchant_accounts.paid_until` forward by its share of a second. An account that is too far ahead of now is
 * throttled.
 */
function readRate({ config: { GATEWAY_RATE_PER_S: rate } }: CallLimitContext) {
  // Without a burst, here a twentieth of a second, the sync would run one claim per call.
  const burst = Math.max(1, Math.floor(rate / 20))
  return { rate, callMs: 1_000 / rate, aheadMs: (burst - 1) * (1_000 / rate) }
}

/**
 * Returns the parts of the claim statement that apply the limit. An account that another process has locked is
 * skipped. Without a rate the parts are empty, and the claim locks no account.
 */
export function limitClaims(ctx: CallLimitContext, accounts: readonly string[]) {
  const { sql } = ctx.db
  const { rate, callMs, aheadMs } = readRate(ctx)
  if (rate === 0) return { throttled: sql``, most: sql`most`, share: sql``, consumed: sql`` }
  const permits = sql`
    floor(extract(epoch from now() - until) * 1000 / ${callMs}::float8 + ${aheadMs / callMs}::float8)::int + 1`
  return {
    throttled: sql`
      throttled as materialized (
        select merchant_code, greatest(paid_until, now()) as until from merchant_accounts
        where merchant_code = any(${[...accounts]}::text[]) for no key update skip locked),`,
    most: sql`least(most, ${permits})`,
    share: sql`join throttled using (merchant_code) where ${permits} > 0`,
    /** A due refund may be sent right after its query, so its call is counted at once. */
    consumed: sql`,
      consumed as (
        update merchant_accounts as a
        set paid_until = ${takeCalls(sql, sql`calls * ${callMs}::float8`)}
        from (
          select merchant_code, count(*) + count(*) filter (where (
            select true from refunds as r
            where r.status in ('pending', 'unknown') and r.due_at <= now()
              and ${sql.unsafe(byTransaction('r', 'claimed'))} limit 1)) as calls
          from claimed group by merchant_code) as c
        where a.merchant_code = c.merchant_code)`,
  }
}

/** Moves `paid_until` forward, from now at the earliest. It adds in UTC, as `addMs` of `clock.ts` does. */
function takeCalls(sql: Sql, ms: ReturnType<Sql>) {
  return sql`(greatest(paid_until, now()) at time zone 'UTC' + ${ms} * interval '1 millisecond') at time zone 'UTC'`
}

/** Selects when the next call of the account `a` may be made at the earliest; null without a rate. */
export function selectNextPermit(ctx: CallLimitContext) {
  const { sql } = ctx.db
  const { rate, aheadMs } = readRate(ctx)
  if (rate === 0) return sql`null`
  return sql`(
    select paid_until - ${aheadMs} * interval '1 millisecond' from merchant_accounts as m
    where m.merchant_code = a.merchant_code)`
}

/** Takes the permit for one call outside the sync. @returns whether the call may be made now */
export async function takeCallPermit(
  ctx: CallLimitContext,
  merchantCode: string,
): Promise<boolean> {
  const { rate, callMs, aheadMs } = readRate(ctx)
  if (rate === 0) return true
  const { count } = await ctx.db.sql`
    update merchant_accounts
    set paid_until = ${takeCalls(ctx.db.sql, ctx.db.sql`${callMs}::float8`)}
    where merchant_code = ${merchantCode}
      and paid_until <= now() + ${aheadMs} * interval '1 millisecond'`
  return count === 1
}
