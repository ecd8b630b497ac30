import type { Context } from './context.ts'

/**
 * `GATEWAY_RATE_PER_S`: calls a second of an account, over all processes. Every call moves the time
 * forward until which the account has paid (`merchant_accounts.paid_until`, GCRA); who is ahead of now
 * by more than a small burst waits. A row that another process is paying on is passed over.
 */
function readRate({ config: { GATEWAY_RATE_PER_S: rate } }: Context) {
  // A twentieth of a second's calls at once: the sync need not come back for each of them.
  const burst = Math.max(1, Math.floor(rate / 20))
  return { rate, callMs: 1_000 / rate, aheadMs: (burst - 1) * (1_000 / rate) }
}

/** Parts of the claim's statement. Without a rate they are empty, and it takes no lock on accounts. */
export function rateClaims(ctx: Context, accounts: readonly string[]) {
  const { sql } = ctx
  const { rate, callMs, aheadMs } = readRate(ctx)
  if (rate === 0) return { paid: sql``, most: sql`most`, share: sql``, charged: sql`` }
  const free = sql`
    floor(extract(epoch from now() - until) * 1000 / ${callMs}::float8 + ${aheadMs / callMs}::float8)::int + 1`
  return {
    /** The accounts' rows, held until the claim's commit. */
    paid: sql`
      paid as materialized (
        select merchant_code, greatest(paid_until, now()) as until from merchant_accounts
        where merchant_code = any(${[...accounts]}::text[]) for no key update skip locked),`,
    most: sql`least(most, ${free})`,
    share: sql`join paid using (merchant_code) where ${free} > 0`,
    /** A refund that is due may be sent after the query: it is paid for at once. */
    charged: sql`,
      charged as (
        update merchant_accounts as a
        set paid_until = greatest(paid_until, now()) + calls * ${callMs}::float8 * interval '1 millisecond'
        from (
          select merchant_code, count(*) + count(*) filter (where exists (
            select from refunds as r where r.merchant_code = picked.merchant_code
              and r.transaction_id = picked.transaction_id
              and r.status in ('pending', 'unknown') and r.due_at <= now())) as calls
          from picked group by merchant_code) as c
        where a.merchant_code = c.merchant_code)`,
  }
}

/** When an account may be asked about at the earliest, for `accounts as a`; a null counts for nothing. */
export function rateNext(ctx: Context) {
  const { sql } = ctx
  const { rate, aheadMs } = readRate(ctx)
  if (rate === 0) return sql`null`
  return sql`(
    select paid_until - ${aheadMs} * interval '1 millisecond' from merchant_accounts as m
    where m.merchant_code = a.merchant_code)`
}

/** Pays for one call outside the sync. @returns whether it may be made now */
export async function payCall(ctx: Context, merchantCode: string): Promise<boolean> {
  const { rate, callMs, aheadMs } = readRate(ctx)
  if (rate === 0) return true
  const { count } = await ctx.sql`
    update merchant_accounts
    set paid_until = greatest(paid_until, now()) + ${callMs} * interval '1 millisecond'
    where merchant_code = ${merchantCode}
      and paid_until <= now() + ${aheadMs} * interval '1 millisecond'`
  return count === 1
}
