import { z } from 'zod'
import { ipnEvents } from '../db/schema.ts'
import { formatTransactionKey, type TransactionKey } from '../db/transaction-key.ts'
import { TimeParameter } from '../http/fields.ts'
import { byKey } from '../platform/postgres/by-key.ts'
import type { Sql } from '../platform/postgres/types.ts'
import { REQUEST_ID } from '../transactions/due.ts'
import { command } from './command.ts'
import { findIdBefore, listMerchants } from './database.ts'
import { requeue, TOUCHING } from './requeue.ts'
import { flag } from './values.ts'

const FILTERS = {
  from: TimeParameter,
  to: TimeParameter,
  kind: z.enum(ipnEvents.kind.enumValues).optional().describe('only of this kind'),
  signature: z.enum(ipnEvents.verdict.enumValues).optional().describe('only with this verdict'),
  unhandled: flag('only those of refunds that were never applied'),
}

export const REPLAY = command({
  name: 'replay',
  description: 'take stored notifications up again: ask about the transactions that they name',
  input: { ...FILTERS, ...TOUCHING },
  examples: `A notification is only ever a reason to ask: what its transaction is, and what becomes of its
refunds, follows from the gateway's answer, as if it had arrived again. It is not counted again.

Examples:
  cli replay --from 2026-11-21T09:00:00Z --to 2026-11-21T11:00:00Z --dry-run
  cli replay --unhandled                       refund notifications that found no refund`,
  async run(cli, { merchant, dryRun, yes, ...filter }) {
    return await cli.onDatabase(async ({ sql }) => {
      const named = await findNamed(sql, await listMerchants(sql, merchant), filter)
      return await requeue(cli, sql, { operation: 'replay', ...named, dryRun, yes })
    })
  },
})

type Filter = z.output<z.ZodObject<typeof FILTERS>>

/** Finds the transactions that notifications name; refund notifications do so by their payment or request id. */
async function findNamed(sql: Sql, merchants: readonly string[], filter: Filter) {
  const found = new Map<string, TransactionKey>()
  let [notifications, unplaced] = [0, 0]
  let after = await findIdBefore(sql, ['ipn_events', 'first_received_at'], filter.from)
  for (;;) {
    const page = await selectPage(sql, merchants, filter, after)
    for (const { isWanted, merchantCode, transactionIds } of page) {
      if (!isWanted) continue
      notifications += 1
      if (transactionIds.length === 0) unplaced += 1
      for (const transactionId of transactionIds) {
        const key = { merchantCode, transactionId }
        found.set(formatTransactionKey(key), key)
      }
    }
    const last = page.at(-1)
    if (!last) break
    after = last.id
  }
  const counts = { notifications, ofUnknownPayments: unplaced, transactions: found.size }
  return { found: [...found.values()], counts }
}

const OF_PAYMENT = byKey('p', ['merchant_code', 'payment_id'], 'e')
const OF_REFUND = byKey('r', ['merchant_code', 'refund_id'], 'e')

type Notified = { id: number; isWanted: boolean; merchantCode: string; transactionIds: string[] }

/** Reads every notification, and marks those that the filter wants, so that all pages are of the same size. */
function selectPage(sql: Sql, merchants: readonly string[], filter: Filter, after: number) {
  const { from = null, to = null, kind = null, signature = null, unhandled = false } = filter
  return sql<Notified[]>`
    select e.id, e.merchant_code as "merchantCode", is_wanted as "isWanted",
      array_remove(array[e.transaction_id, p.transaction_id, r.transaction_id], null) as "transactionIds"
    from (
      select id, kind, merchant_code, payment_id,
        case when kind = 'payment' then transaction_id end as transaction_id,
        case when request_id ~* ${REQUEST_ID.source} then request_id::uuid end as refund_id,
        merchant_code = any(${[...merchants]})
          and (${from}::timestamptz is null or first_received_at >= ${from})
          and (${to}::timestamptz is null or first_received_at < ${to})
          and (${kind}::text is null or kind = ${kind})
          and (${signature}::text is null or verdict = ${signature})
          and (not ${unhandled}::boolean or kind = 'refund' and handled_at is null) as is_wanted
      from ipn_events where id > ${after} order by id limit 2000
    ) as e
    left join lateral (
      select transaction_id from payments as p where e.kind = 'refund' and is_wanted and ${sql.unsafe(OF_PAYMENT)} limit 1
    ) as p on true
    left join lateral (
      select transaction_id from refunds as r where e.kind = 'refund' and is_wanted and ${sql.unsafe(OF_REFUND)} limit 1
    ) as r on true
    order by e.id`
}
