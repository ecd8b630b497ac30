import type { Command } from 'commander'
import { z } from 'zod'
import { ipnEvents } from '../db/schema.ts'
import type { TransactionKey } from '../db/transaction-key.ts'
import { TimeParameter } from '../http/fields.ts'
import { byKey } from '../platform/postgres/by-key.ts'
import type { Sql } from '../platform/postgres/types.ts'
import { REQUEST_ID } from '../transactions/due.ts'
import { addFilters, findIdBefore, listMerchants } from './lists.ts'
import type { Json } from './options.ts'
import type { Cli } from './print.ts'
import type { Asking } from './progress.ts'
import { addAsking, requeueCounted } from './requeue.ts'

const query = {
  from: TimeParameter,
  to: TimeParameter,
  kind: z.enum(ipnEvents.kind.enumValues).optional().describe('only of this kind'),
  signature: z.enum(ipnEvents.verdict.enumValues).optional().describe('only with this verdict'),
}

type ReplayOptions = Json & Asking & { merchant?: string; unhandled?: true }

/** Adds `replay`, which has stored notifications lead to a query once more. */
export function addReplayCommand(program: Command, cli: Cli): void {
  const command = program
    .command('replay')
    .description('take stored notifications up again: ask about the transactions that they name')
    .option('--unhandled', 'only those of refunds that were never applied')
  addAsking(addFilters(command, query))
    .addHelpText('after', EXAMPLES)
    .action(async (_: unknown, given: Command) => {
      const options = given.optsWithGlobals<ReplayOptions>()
      await cli.onDatabase(async (sql) => {
        const merchants = await listMerchants(sql, options.merchant)
        const unhandled = options.unhandled === true
        const filter = { ...z.object(query).parse(options), merchants, unhandled }
        const found = await findNotified(sql, filter)
        await requeueCounted(cli, sql, { operation: 'replay', ...found }, options)
      })
    })
}

const EXAMPLES = `
A notification is only ever a reason to ask: what its transaction is, and what becomes of its
refunds, follows from the gateway's answer, as if it had arrived again. It is not counted again.

Examples:
  cli replay --from 2026-11-21T09:00:00Z --to 2026-11-21T11:00:00Z --dry-run
  cli replay --unhandled                       refund notifications that found no refund`

type NotifiedFilter = z.output<z.ZodObject<typeof query>> & {
  merchants: readonly string[]
  unhandled: boolean
}

type NotifiedPage = {
  last: number | null
  notifications: number
  placed: number
  keys: [merchantCode: string, transactionId: string][] | null
}

/** Finds the transactions that notifications name; those of refunds by their payment or their request id. */
async function findNotified(sql: Sql, filter: NotifiedFilter) {
  const found = new Map<string, TransactionKey>()
  const counts = { notifications: 0, placed: 0 }
  let after: number | null = await findIdBefore(
    sql,
    ['ipn_events', 'first_received_at'],
    filter.from,
  )
  while (after !== null) {
    const [page]: NotifiedPage[] = await selectNotified(sql, filter, after)
    counts.notifications += page?.notifications ?? 0
    counts.placed += page?.placed ?? 0
    for (const [merchantCode, transactionId] of page?.keys ?? []) {
      found.set(JSON.stringify([merchantCode, transactionId]), { merchantCode, transactionId })
    }
    after = page?.last ?? null
  }
  const unplaced = counts.notifications - counts.placed
  const keys = [...found.values()]
  const { notifications } = counts
  return {
    keys,
    counts: { notifications, 'of unknown payments': unplaced, transactions: keys.length },
  }
}

const EXAMINED = 2_000
const OF_PAYMENT = byKey('p', ['merchant_code', 'payment_id'], 'w')
const OF_REFUND = byKey('r', ['merchant_code', 'refund_id'], 'w')

/** In the order of their ids, so that no page is longer than another, whatever the filter leaves out. */
function selectNotified(
  sql: Sql,
  { merchants, from, to, kind, signature, unhandled }: NotifiedFilter,
  after: number,
) {
  return sql<NotifiedPage[]>`
    with page as materialized (
      select * from ipn_events where id > ${after} order by id limit ${sql.unsafe(String(EXAMINED))}
    ), wanted as materialized (
      select id, kind, merchant_code, transaction_id, payment_id,
        case when request_id ~* ${REQUEST_ID.source} then request_id::uuid end as refund_id
      from page
      where merchant_code = any(${[...merchants]})
        and ${from === undefined ? sql`true` : sql`first_received_at >= ${from}`}
        and ${to === undefined ? sql`true` : sql`first_received_at < ${to}`}
        and ${kind === undefined ? sql`true` : sql`kind = ${kind}`}
        and ${signature === undefined ? sql`true` : sql`verdict = ${signature}`}
        and ${unhandled ? sql`kind = 'refund' and handled_at is null` : sql`true`}
    ), named as (
      select id, merchant_code, transaction_id from wanted where kind = 'payment'
      union
      select w.id, w.merchant_code, p.transaction_id from wanted as w cross join lateral (
        select transaction_id from payments as p where ${sql.unsafe(OF_PAYMENT)} limit 1) as p
      where w.kind = 'refund'
      union
      select w.id, w.merchant_code, r.transaction_id from wanted as w cross join lateral (
        select transaction_id from refunds as r where ${sql.unsafe(OF_REFUND)} limit 1) as r
      where w.kind = 'refund'
    )
    select (select max(id) from page) as last, (select count(*) from wanted) as notifications,
      (select count(distinct id) from named) as placed,
      (select json_agg(distinct jsonb_build_array(merchant_code, transaction_id)) from named) as keys`
}
