import { listMerchantCodes } from '../accounts/merchant-codes.ts'
import type { Context } from '../context.ts'
import { byTransaction, type TransactionKey } from '../db/transaction-key.ts'
import {
  buildDiscrepancyEvents,
  logDiscrepancies,
  recordDiscrepancies,
  resolveDiscrepancies,
} from '../discrepancies/store.ts'
import { recordEvents } from '../events/record-events.ts'
import { runInTransaction } from '../platform/postgres/transaction.ts'
import type { Tx } from '../platform/postgres/types.ts'
import { isUnendedSql } from '../refunds/lifecycle.ts'

const MAX_COUNTED = 10_000
const BATCH = 500
const UNENDED = isUnendedSql('r')

/** Warns at the start of each account with open work that is no longer configured: it cannot be queried, nor its refunds sent. */
export async function warnOfMissingAccounts({
  sql,
  config,
  log,
}: Pick<Context, 'sql' | 'config' | 'log'>): Promise<void> {
  const missing = await sql<{ merchantCode: string; refunds: number; transactions: number }[]>`
    select m.merchant_code as "merchantCode", r.n as refunds, t.n as transactions
    from merchant_accounts as m cross join lateral (
      select count(*) as n from (
        select from refunds as r
        where r.merchant_code = m.merchant_code and ${sql.unsafe(UNENDED)}
        limit ${MAX_COUNTED}) as r
    ) as r cross join lateral (
      select count(*) as n from (
        select from transactions as t where t.merchant_code = m.merchant_code and t.due_at is not null
        limit ${MAX_COUNTED}) as t
    ) as t
    where m.merchant_code <> all(${listMerchantCodes(config)}) and r.n + t.n > 0
    order by m.merchant_code`
  const what =
    'a merchant account with open work is no longer configured; configure it again, or cancel its refunds or decide their outcome'
  for (const work of missing) log.warn(work, what)
}

/**
 * Records `account_missing` for each transaction with open refunds of an account that is no longer configured, or, if it has
 * none, for the one whose query has been due the longest. Resolves those that are over.
 */
export async function checkMissingAccounts(
  ctx: Pick<Context, 'sql' | 'config' | 'log' | 'metrics'>,
): Promise<number> {
  const accounts = listMerchantCodes(ctx.config)
  const found = await runInTransaction(ctx.sql, async (tx) => {
    await resolveDiscrepancies(tx, await selectOver(tx, accounts))
    const missing = await selectMissing(tx, accounts)
    const recorded = await recordDiscrepancies(
      tx,
      missing.map(({ hasRefunds, ...one }) => ({
        ...one,
        ours: hasRefunds ? 'has refunds that have not ended' : 'a query is due',
        theirs: 'the merchant account is not configured',
      })),
    )
    await recordEvents(tx, buildDiscrepancyEvents(recorded))
    return recorded
  })
  logDiscrepancies(ctx, found)
  return found.length
}

/** Discrepancies that still apply: open, or resolved by a person while both sides differ as before. */
const STANDING = `d.kind = 'account_missing'
  and (d.resolved_at is null or (d.resolved_by is not null and d.over_at is null))`

type OfTransaction = TransactionKey & { kind: 'account_missing' }

/** The transactions to record, locked; one that another process holds waits for the next round. */
async function selectMissing(tx: Tx, accounts: readonly string[]) {
  return await tx<(OfTransaction & { hasRefunds: boolean })[]>`
    with missing as materialized (
      select merchant_code from merchant_accounts where merchant_code <> all(${[...accounts]})
    ), unended as materialized (
      select distinct r.merchant_code, r.transaction_id from missing join refunds r using (merchant_code)
      where ${tx.unsafe(UNENDED)}
    ), work as (
      select merchant_code, transaction_id, true as has_refunds from unended
      union all
      select merchant_code, transaction_id, false from missing cross join lateral (
        select transaction_id from transactions as t
        where t.merchant_code = missing.merchant_code and t.due_at is not null order by t.due_at limit 1
      ) as t
      where not exists (select from unended u where u.merchant_code = missing.merchant_code)
        and not exists (select from discrepancies d
          where d.merchant_code = missing.merchant_code and ${tx.unsafe(STANDING)})
    )
    select t.merchant_code as "merchantCode", t.transaction_id as "transactionId", 'account_missing' as kind,
      work.has_refunds as "hasRefunds"
    from work cross join lateral (
      select merchant_code, transaction_id from transactions as t
      where ${tx.unsafe(byTransaction('t', 'work'))} limit 1 for update skip locked) as t
    where not exists (select from discrepancies d
      where d.merchant_code = work.merchant_code and d.transaction_id = work.transaction_id
        and ${tx.unsafe(STANDING)})
    limit ${BATCH}`
}

/** Transactions whose account is configured again, or that no longer have open work. */
async function selectOver(tx: Tx, accounts: readonly string[]): Promise<OfTransaction[]> {
  return await tx<OfTransaction[]>`
    select d.merchant_code as "merchantCode", d.transaction_id as "transactionId", 'account_missing' as kind
    from merchant_accounts as m cross join lateral (
      select merchant_code, transaction_id from discrepancies as d
      where d.merchant_code = m.merchant_code and ${tx.unsafe(STANDING)} offset 0
    ) as d
    where m.merchant_code = any(${[...accounts]}) or not exists (
      select from refunds r where r.merchant_code = d.merchant_code
        and r.transaction_id = d.transaction_id and ${tx.unsafe(UNENDED)}
      union all
      select from transactions t where t.merchant_code = d.merchant_code
        and t.transaction_id = d.transaction_id and t.due_at is not null)`
}
