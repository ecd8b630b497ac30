import type { Context } from '../context.ts'
import { makeDue, SYNC_DUE } from '../db/due.ts'
import { runInTransaction } from '../db/transaction.ts'
import {
  announceDiscrepancies,
  type Found,
  recordDiscrepancies,
  tellDiscrepancies,
} from '../discrepancies/record.ts'
import { recordEvents } from '../events/record.ts'
import type { TransactionKey } from '../payments/apply.ts'
import { listAccounts } from './claim.ts'

/** No more than so many wait at a time because of the sweep: what comes new is not held up behind it. */
const BATCH = 100

/**
 * Makes transactions due, once, that came to their end `RECONCILE_FINAL_FOR_MS` ago, or were abandoned
 * then: the gateway may have changed its mind and told nobody. Everything else that could still change has
 * a due time of its own. It calls nobody: the ordinary claim does. One that was never notified by then is
 * recorded as `ipn_missing`.
 * @returns how many were made due
 */
export async function reconcile(ctx: Context): Promise<number> {
  const accounts = listAccounts(ctx)
  const { due, found } = await runInTransaction(ctx.sql, async (tx) => {
    const rows = await tx<Swept[]>`
      with waiting as materialized (
        select count(*) as n from (select from transactions
          where due_at <= now() and merchant_code = any(${accounts}) limit ${BATCH}) as w
      ), picked as materialized (
        select merchant_code, transaction_id from transactions
        where reconcile_at <= now() and reconcile_at < 'infinity' and merchant_code = any(${accounts})
        order by reconcile_at limit greatest(0, ${BATCH} - (select n from waiting))
        for update skip locked
      )
      update transactions t set ${makeDue(ctx.sql)},
        reconcile_at = case when t.final then null else 'infinity'::timestamptz end
      from picked p
      where t.merchant_code = p.merchant_code and t.transaction_id = p.transaction_id
      returning t.merchant_code as "merchantCode", t.transaction_id as "transactionId", t.state,
        t.final and t.ipn_count = 0 as unnotified`
    if (rows.length > 0) await tx`select pg_notify(${SYNC_DUE}, '')`
    const unnotified = rows.filter((row) => row.unnotified).map(describeUnnotified)
    const found = await recordDiscrepancies(tx, unnotified)
    await recordEvents(tx, tellDiscrepancies(found))
    return { due: rows.length, found }
  })
  announceDiscrepancies(ctx, found)
  return due
}

type Swept = TransactionKey & { state: string; unnotified: boolean }

function describeUnnotified({ merchantCode, transactionId, state }: Swept): Found {
  const ours = `state ${state}, known by a request to sync`
  return { merchantCode, transactionId, kind: 'ipn_missing', ours, theirs: 'no notification' }
}
