import type { Context } from '../context.ts'
import { byKey } from '../platform/postgres/by-key.ts'

/** Transactions per statement. */
const BATCH = 500

const CALLS = byKey('g', ['merchant_code', 'transaction_id'], 'p')

/**
 * Deletes transactions that neither a notification nor an answer of the gateway has named within `SYNC_REPOLL_FOR_MS`
 * of the last request to sync, with the records of their queries: mistyped ids. One that was never queried, or whose
 * query is in progress, is left for a later round.
 * @returns the number of transactions deleted
 */
export async function forgetUnconfirmed({
  sql,
  config,
  log,
}: Pick<Context, 'sql' | 'config' | 'log'>): Promise<number> {
  const forgotten = await sql<{ merchantCode: string; transactionId: string }[]>`
    with picked as materialized (
      select merchant_code, transaction_id from transactions
      where unconfirmed and asked_for_at < now() - ${config.SYNC_REPOLL_FOR_MS} * interval '1 millisecond'
        and lease_id is null and queried_at is not null
      order by asked_for_at limit ${BATCH} for update skip locked
    ), calls as (
      delete from gateway_calls as c using picked as p cross join lateral (
        select id from gateway_calls as g where ${sql.unsafe(CALLS)} offset 0) as g
      where c.id = g.id
    )
    delete from transactions as t using picked as p
    where t.merchant_code = p.merchant_code and t.transaction_id = p.transaction_id
    returning t.merchant_code as "merchantCode", t.transaction_id as "transactionId"`
  for (const key of forgotten) {
    log.info(
      key,
      'transaction forgotten: it was only ever asked for, and the gateway does not know it',
    )
  }
  return forgotten.length
}
