import { setTimeout as pause } from 'node:timers/promises'
import type { changes, gatewayCalls } from '../db/schema.ts'
import { byTransaction, selectKeys, type TransactionKey } from '../db/transaction-key.ts'
import { type DiscrepancyView, showDiscrepancy } from '../discrepancies/routes.ts'
import { listOpenSeenSince } from '../discrepancies/store.ts'
import { DomainError } from '../errors.ts'
import { rateProcesses, readProcesses } from '../health/overview.ts'
import { withIso } from '../platform/postgres/row-set.ts'
import type { Sql } from '../platform/postgres/types.ts'
import { type Cli, command } from './command.ts'
import { listMerchants } from './database.ts'
import { formatTable, showProgress } from './print.ts'
import { findByFilter, requeue, skipDeparted, TOUCHING } from './requeue.ts'
import { Since } from './values.ts'

export const RECONCILE = command({
  name: 'reconcile',
  description: 'ask the gateway about every transaction since a time, and report what differs',
  input: {
    since: Since.describe('first seen since, like 2026-11-21T09:00:00Z or 6h'),
    ...TOUCHING,
  },
  examples: `The service has to run: its workers ask, and this command waits for them. Exit code 1 if
something differs, or was not answered.

Examples:
  cli reconcile --since 2026-11-20T00:00:00Z   after a restore: from well before the backup
  cli reconcile --since 24h --merchant UFLIYL --json`,
  async run(cli, { since, merchant, dryRun, yes }) {
    return await cli.onDatabase(async (db) => {
      const { sql } = db
      const merchants = await listMerchants(sql, merchant)
      const all = await findByFilter(db, merchants, { from: since })
      const found = skipDeparted(cli, all)
      if (!dryRun) await requireWorker(sql, 'nothing was changed')
      const [clock] = await sql<{ now: string }[]>`select clock_timestamp()::text as now`
      const begun = clock?.now ?? ''
      const counts = { transactions: found.length }
      const done = await requeue(cli, sql, { operation: 'reconcile', found, counts, dryRun, yes })
      if (dryRun || done.isFinding) return done
      await waitUntilAsked(cli, sql, found, begun)
      const findings = await readFindings(sql, found, begun)
      return {
        value: { asked: found.length, ...findings },
        text: formatFindings(found.length, findings),
        isFinding:
          found.length < all.length || Object.values(findings).some(({ length }) => length > 0),
      }
    })
  },
})

/** @throws DomainError if no worker is running */
async function requireWorker(sql: Sql, then: string): Promise<void> {
  if (rateProcesses(await readProcesses(sql)).hasWorker) return
  const what = 'no process of the service lives that asks the gateway (ROLE=worker or ROLE=all)'
  throw new DomainError('unavailable', `${what}: start one, and run this again; ${then}`)
}

const POLL_MS = 500
/** How many transactions one statement looks up. */
const LOOKED_UP = 5_000

/** Waits until each was queried after `since`. @throws DomainError if no worker is running any more */
async function waitUntilAsked(
  cli: Cli,
  sql: Sql,
  keys: readonly TransactionKey[],
  since: string,
): Promise<void> {
  const show = showProgress(cli, 'asked', keys.length)
  for (let left = keys; ; ) {
    const startedAt = performance.now()
    left = await inParts(left, (part) => selectWaiting(sql, part, since))
    show(keys.length - left.length, left.length === 0 && keys.length > 0)
    if (left.length === 0) return
    await requireWorker(sql, `${left.length} transactions stay due, and are asked about then`)
    // With many transactions, the look-ups must not cost more than the queries that they wait for.
    await pause(Math.max(POLL_MS, 4 * (performance.now() - startedAt)))
  }
}

async function inParts<T>(
  keys: readonly TransactionKey[],
  read: (part: readonly TransactionKey[]) => Promise<T[]>,
): Promise<T[]> {
  const rows: T[] = []
  for (let from = 0; from < keys.length; from += LOOKED_UP) {
    rows.push(...(await read(keys.slice(from, from + LOOKED_UP))))
  }
  return rows
}

/**
 * A claim alone does not count: it may have been handed back without a call. Each call leaves a record, but one of
 * before may be dated later, by a clock that has gone back since.
 */
const selectWaiting = (sql: Sql, keys: readonly TransactionKey[], since: string) =>
  sql<TransactionKey[]>`
    select k.merchant_code as "merchantCode", k.transaction_id as "transactionId"
    from ${selectKeys(sql, keys)} cross join lateral (
      select lease_id, want, claimed from transactions as t where ${sql.unsafe(byTransaction('t'))} limit 1) as t
    left join lateral (
      select sent_at from gateway_calls as g
      where command = 'QUERY_PT' and sent_at >= ${since}::timestamptz
        and ${sql.unsafe(byTransaction('g'))} limit 1) as g on true
    where g.sent_at is null or t.lease_id is not null or t.want <> t.claimed`

type Changed = TransactionKey &
  Pick<typeof changes.$inferSelect, 'paymentId' | 'refundId' | 'field' | 'before' | 'after' | 'at'>

type Unanswered = TransactionKey &
  Pick<typeof gatewayCalls.$inferSelect, 'outcome' | 'code' | 'message'>

type Findings = {
  changed: Changed[]
  /** Those that are open and that the queries showed, also if they were known before. */
  discrepancies: DiscrepancyView[]
  /** An outcome of `rejected` means that the gateway refused, as it does for a transaction that it does not know. */
  unanswered: Unanswered[]
}

async function readFindings(
  sql: Sql,
  keys: readonly TransactionKey[],
  since: string,
): Promise<Findings> {
  const readChanged = (part: readonly TransactionKey[]) => sql<Changed[]>`
    select k.merchant_code as "merchantCode", k.transaction_id as "transactionId", c.payment_id as "paymentId",
      c.refund_id as "refundId", c.field, c.before, c.after, c.at
    from ${selectKeys(sql, part)} cross join lateral (
      select * from changes as c
      where at >= ${since}::timestamptz and ${sql.unsafe(byTransaction('c'))} offset 0) as c
    order by c.at, c.id`
  const readUnanswered = (part: readonly TransactionKey[]) => sql<Unanswered[]>`
    select k.merchant_code as "merchantCode", k.transaction_id as "transactionId", g.outcome, g.code, g.message
    from ${selectKeys(sql, part)} cross join lateral (
      select * from gateway_calls as g
      where command = 'QUERY_PT' and sent_at >= ${since}::timestamptz
        and ${sql.unsafe(byTransaction('g'))}, sent_at desc limit 1) as g
    where g.outcome <> 'answered'`
  const changed = await inParts(keys, readChanged)
  const unanswered = await inParts(keys, readUnanswered)
  const seen = await inParts(keys, (part) => listOpenSeenSince(sql, part, since))
  const discrepancies = seen.map(showDiscrepancy)
  return { changed: changed.map((one) => withIso(one, ['at'])), discrepancies, unanswered }
}

const COLUMNS = ['merchantCode', 'transactionId', 'what', 'before', 'now', 'at'] as const

function formatFindings(asked: number, { changed, discrepancies, unanswered }: Findings): string {
  const rows = [
    ...changed.map(({ field, refundId, paymentId, after: now, ...one }) => {
      return { ...one, what: [field, refundId ?? paymentId ?? ''].join(' ').trim(), now }
    }),
    ...discrepancies.map(({ kind: what, ours, theirs, lastSeenAt, ...one }) => {
      return { ...one, what, before: ours.says, now: theirs.says, at: lastSeenAt }
    }),
    ...unanswered.map(({ outcome, code, message, ...one }) => {
      const what = outcome === 'rejected' ? `refused by the gateway, code ${code}` : 'no answer'
      return { ...one, what, before: null, now: message, at: null }
    }),
  ]
  const counts = [
    `${asked} transactions asked`,
    `${changed.length} changes`,
    `${discrepancies.length} discrepancies`,
    `${unanswered.length} without an answer`,
  ]
  const table = rows.length === 0 ? '' : `${formatTable(rows, COLUMNS)}\n`
  return `${table}${counts.join(', ')}\n`
}
