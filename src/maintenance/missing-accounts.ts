import { listMerchantCodes } from '../accounts/merchant-codes.ts'
import type { Context } from '../context.ts'
import { isUnendedSql } from '../db/schema.ts'
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

const MAX_COUNTED = 10_000
const BATCH = 500
const UNENDED = isUnendedSql('r')

/** Counts the open work of each account that has some and is not among `$1`, up to `MAX_COUNTED`. */
export const MISSING_WORK_SQL = `
  select merchant, work, value from (
    select merchant, work, value, sum(value) over (partition by merchant) as total
    from (select merchant_code as merchant from merchant_accounts where merchant_code <> all($1)) as m
    cross join lateral (
      select 'refunds' as work, count(*) as value from (select from refunds as r
        where merchant_code = merchant and ${UNENDED} limit ${MAX_COUNTED}) as r
      union all
      select 'transactions', count(*) from (select from transactions
        where merchant_code = merchant and due_at is not null limit ${MAX_COUNTED}) as t
    ) as counted) as work
  where total > 0 order by merchant, work`

/** Warns at the start of open work that can be neither queried nor sent. */
export async function warnOfMissingAccounts({
  db: { sql },
  config,
  log,
}: Pick<Context, 'db' | 'config' | 'log'>): Promise<void> {
  const rows = await sql.unsafe<{ merchant: string; work: string; value: number }[]>(
    MISSING_WORK_SQL,
    [listMerchantCodes(config)],
  )
  const what =
    'a merchant account with open work is no longer configured; configure it again, or cancel its refunds or decide their outcome'
  for (const { merchant: merchantCode, work, value } of rows) {
    log.warn({ merchantCode, work, count: value }, what)
  }
}

/**
 * Records `account_missing` for each transaction with open refunds whose account is no longer configured, and
 * resolves it where the account is configured again or the refunds have ended.
 */
export async function checkMissingAccounts(
  ctx: Pick<Context, 'db' | 'config' | 'log' | 'metrics'>,
): Promise<number> {
  const accounts = listMerchantCodes(ctx.config)
  const found = await runInTransaction(ctx.db.sql, async (tx) => {
    await resolveDiscrepancies(tx, describe(await selectOver(tx, accounts)))
    const recorded = await recordDiscrepancies(tx, describe(await selectMissing(tx, accounts)))
    await recordEvents(tx, buildDiscrepancyEvents(recorded))
    return recorded
  })
  logDiscrepancies(ctx, found)
  return found.length
}

function describe(keys: readonly TransactionKey[]) {
  const ours = 'has refunds that have not ended'
  const theirs = 'the merchant account is not configured'
  return keys.map((key) => ({ ...key, kind: 'account_missing' as const, ours, theirs }))
}

/** Discrepancies that still apply: they are open, or a person resolved them while both sides still differ. */
const STANDING = `d.kind = 'account_missing'
  and (d.resolved_at is null or (d.resolved_by is not null and d.over_at is null))`

/** Selects and locks the transactions to record. One that another process has locked waits for the next round. */
async function selectMissing(tx: Tx, accounts: readonly string[]): Promise<TransactionKey[]> {
  return await tx<TransactionKey[]>`
    with work as materialized (
      select distinct r.merchant_code, r.transaction_id from merchant_accounts as m join refunds as r using (merchant_code)
      where merchant_code <> all(${[...accounts]}) and ${tx.unsafe(UNENDED)}
    )
    select t.merchant_code as "merchantCode", t.transaction_id as "transactionId"
    from work cross join lateral (
      select merchant_code, transaction_id from transactions as t
      where ${tx.unsafe(byTransaction('t', 'work'))} limit 1 for update skip locked) as t
    where not exists (select from discrepancies d
      where d.merchant_code = work.merchant_code and d.transaction_id = work.transaction_id
        and ${tx.unsafe(STANDING)})
    limit ${BATCH}`
}

async function selectOver(tx: Tx, accounts: readonly string[]): Promise<TransactionKey[]> {
  return await tx<TransactionKey[]>`
    select d.merchant_code as "merchantCode", d.transaction_id as "transactionId"
    from merchant_accounts as m cross join lateral (
      select merchant_code, transaction_id from discrepancies as d
      where d.merchant_code = m.merchant_code and ${tx.unsafe(STANDING)} offset 0
    ) as d
    where m.merchant_code = any(${[...accounts]}) or not exists (
      select from refunds r where r.merchant_code = d.merchant_code
        and r.transaction_id = d.transaction_id and ${tx.unsafe(UNENDED)})`
}
