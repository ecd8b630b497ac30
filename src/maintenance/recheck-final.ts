import { listMerchantCodes } from '../accounts/merchant-codes.ts'
import type { Context } from '../context.ts'
import { SYNC_DUE } from '../db/names.ts'
import type { TransactionKey } from '../db/transaction-key.ts'
import type { NewDiscrepancy } from '../discrepancies/kinds.ts'
import {
  buildDiscrepancyEvents,
  logDiscrepancies,
  recordDiscrepancies,
} from '../discrepancies/store.ts'
import { recordEvents } from '../events/record-events.ts'
import { notifyAfterCommit } from '../platform/postgres/notify.ts'
import { runInTransaction } from '../platform/postgres/transaction.ts'
import { makeDue } from '../transactions/due.ts'

/** Fills the queue of due transactions up to this number at most, so that new ones are not held up. */
const MAX_DUE = 100

/**
 * Makes transactions due once more that became final or were abandoned `RECONCILE_FINAL_FOR_MS` ago: the
 * gateway may have changed its answer without a notification. All others that can still change have a due
 * time of their own. The pass makes no call: the ordinary claim does. A final transaction that was never
 * notified by then is recorded as `ipn_missing`.
 * @returns the number of transactions made due
 */
export async function recheckFinal(ctx: Context): Promise<number> {
  const accounts = listMerchantCodes(ctx.config)
  const { due, found } = await runInTransaction(ctx.sql, async (tx) => {
    const rows = await tx<Rechecked[]>`
      with waiting as materialized (
        select count(*) as n from (select from transactions
          where due_at <= now() and merchant_code = any(${accounts}) limit ${MAX_DUE}) as w
      ), picked as materialized (
        select merchant_code, transaction_id from transactions
        where reconcile_at <= now() and reconcile_at < 'infinity' and merchant_code = any(${accounts})
        order by reconcile_at limit greatest(0, ${MAX_DUE} - (select n from waiting))
        for update skip locked
      )
      update transactions t set ${makeDue(ctx.sql)},
        reconcile_at = case when t.final then null else 'infinity'::timestamptz end
      from picked p
      where t.merchant_code = p.merchant_code and t.transaction_id = p.transaction_id
      returning t.merchant_code as "merchantCode", t.transaction_id as "transactionId", t.state,
        t.final and t.ipn_count = 0 as unnotified`
    if (rows.length > 0) notifyAfterCommit(tx, SYNC_DUE)
    const unnotified = rows.filter((row) => row.unnotified).map(describeUnnotified)
    const found = await recordDiscrepancies(tx, unnotified)
    await recordEvents(tx, buildDiscrepancyEvents(found))
    return { due: rows.length, found }
  })
  logDiscrepancies(ctx, found)
  return due
}

type Rechecked = TransactionKey & { state: string; unnotified: boolean }

function describeUnnotified({ merchantCode, transactionId, state }: Rechecked): NewDiscrepancy {
  const ours = `state ${state}, known by a request to sync`
  return { merchantCode, transactionId, kind: 'ipn_missing', ours, theirs: 'no notification' }
}
