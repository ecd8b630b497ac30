import { type Command, Option } from 'commander'
import { z } from 'zod'
import type { ReadDatabase } from '../db/reads.ts'
import type { TransactionKey } from '../db/transaction-key.ts'
import { DomainError } from '../errors.ts'
import { runInTransaction } from '../platform/postgres/transaction.ts'
import type { Sql } from '../platform/postgres/types.ts'
import { readTransactions, TRANSACTIONS } from '../transactions/find-transactions.ts'
import { requeueTransactions } from '../transactions/request-sync.ts'
import { Transaction } from '../transactions/view.ts'
import { recordChange } from './database.ts'
import { addFilters, listMerchants, walkRows } from './lists.ts'
import { type Json, jsonOption, UsageError } from './options.ts'
import type { Cli } from './print.ts'
import { type Asking, mayTouch, showProgress } from './progress.ts'

type RequeueOptions = Json & Asking & { sync?: string; merchant?: string }

const STATUSES = Transaction.shape.sync.shape.status.exclude(['unconfirmed']).options

/** Adds `requeue`, which has the gateway asked about transactions now. */
export function addRequeueCommand(program: Command, cli: Cli): void {
  const command = program
    .command('requeue')
    .description('ask the gateway about transactions now, also about those that were abandoned')
    .argument('[ids...]', 'of transactions, in place of filters')
    .addOption(new Option('--sync <status>', 'only with this state of sync').choices(STATUSES))
  addAsking(addFilters(command, TRANSACTIONS.query))
    .addHelpText('after', EXAMPLES)
    .action(async (ids: string[], _: unknown, given: Command) => {
      const options = given.optsWithGlobals<RequeueOptions>()
      await cli.onDatabase(async (sql, db) => {
        const keys = await findKeys({ sql, db }, ids, options)
        const counts = { transactions: keys.length }
        await requeueCounted(cli, sql, { operation: 'requeue', keys, counts }, options)
      })
    })
}

const EXAMPLES = `
Examples:
  cli requeue --sync abandoned --dry-run       how many were given up
  cli requeue --sync abandoned --from 2026-11-21T09:00:00Z --merchant UFLIYL
  cli requeue 240830080146NDTISR`

/** The options of a command that counts, asks and then makes transactions due. */
export function addAsking(command: Command): Command {
  return command
    .option('--dry-run', 'only count')
    .option('--yes', 'do not ask, however many there are')
    .addOption(jsonOption())
}

async function findKeys(
  database: ReadDatabase,
  ids: readonly string[],
  { merchant, sync, ...options }: RequeueOptions,
): Promise<TransactionKey[]> {
  const asked = z.object(TRANSACTIONS.query).parse(options)
  const isFiltered = [sync, ...Object.values(asked)].some((value) => value !== undefined)
  if (ids.length === 0 && !isFiltered && merchant === undefined) {
    throw new UsageError('name transactions, or a filter: --sync abandoned, --from, --merchant')
  }
  if (ids.length > 0 && isFiltered) throw new UsageError('name transactions or filters, not both')
  const merchants = await listMerchants(database.sql, merchant)
  if (ids.length > 0) return await findById(database.sql, merchants, ids)
  return await findByFilter(database, { ...asked, merchants, coversAll: false }, sync)
}

/** @throws DomainError unless each id is that of one transaction */
async function findById(
  sql: Sql,
  merchants: readonly string[],
  ids: readonly string[],
): Promise<TransactionKey[]> {
  const keys = ids.flatMap((transactionId) =>
    merchants.map((merchantCode) => ({ merchantCode, transactionId })),
  )
  const known = Array.from((await readTransactions(sql, keys)).values(), (one) => one.transaction)
  for (const id of ids) {
    const found = known.filter(({ transactionId }) => transactionId === id)
    if (found.length === 0) throw new DomainError('transaction_not_found', `No transaction ${id}`)
    if (found.length > 1) {
      const detail = `Several merchant accounts have a transaction ${id}: name one with --merchant`
      throw new DomainError('ambiguous_merchant', detail)
    }
  }
  return known.map(({ merchantCode, transactionId }) => ({ merchantCode, transactionId }))
}

/** Finds transactions by the filters of their list, which has none by the state of sync. */
export async function findByFilter(
  database: ReadDatabase,
  filter: Parameters<typeof TRANSACTIONS.read>[1],
  status?: string,
): Promise<TransactionKey[]> {
  const keys: TransactionKey[] = []
  for await (const { merchantCode, transactionId, sync } of walkRows(
    database,
    TRANSACTIONS,
    filter,
  )) {
    if (status === undefined || sync.status === status) keys.push({ merchantCode, transactionId })
  }
  return keys
}

type Counted = {
  operation: string
  keys: readonly TransactionKey[]
  counts: Readonly<Record<string, number>>
}

/** Says how many there are, asks, and makes them due. */
export async function requeueCounted(
  cli: Cli,
  sql: Sql,
  { operation, keys, counts }: Counted,
  { json, ...asking }: Asking & Json,
): Promise<void> {
  const counted = Object.entries(counts).map(([name, count]) => `${count} ${name}`)
  const isDone = !asking.dryRun && (await mayRequeue(cli, keys.length, asking)) && keys.length > 0
  if (isDone) await requeueAll(cli, sql, operation, keys)
  const done = isDone ? 'the gateway is asked about them' : 'nothing was changed'
  cli.emit(
    json,
    { ...counts, requeued: isDone ? keys.length : 0 },
    `${counted.join(', ')}: ${done}\n`,
  )
}

/** @returns whether to go on; where a person says no, that is a refusal */
export async function mayRequeue(cli: Cli, count: number, asking: Asking): Promise<boolean> {
  const may = await mayTouch(
    cli,
    count,
    `this asks the gateway about ${count} transactions`,
    asking,
  )
  if (!may) cli.setExitCode(1)
  return may
}

/** Transactions of one commit, which hold their locks until its end. */
const BATCH = 500

/** Makes transactions due, batch by batch, each with an entry of the audit log. */
export async function requeueAll(
  cli: Cli,
  sql: Sql,
  operation: string,
  keys: readonly TransactionKey[],
): Promise<void> {
  const show = showProgress(cli)
  for (let done = 0; done < keys.length; done += BATCH) {
    const batch = keys.slice(done, done + BATCH)
    const [first] = batch
    const isOfOne = batch.every(({ merchantCode }) => merchantCode === first?.merchantCode)
    await runInTransaction(sql, async (tx) => {
      const count = await requeueTransactions(tx, batch)
      const objectId = batch.length === 1 ? first?.transactionId : `${count} transactions`
      const merchantCode = isOfOne ? first?.merchantCode : undefined
      await recordChange(cli, tx, operation, merchantCode ?? null, objectId ?? null)
    })
    show('transactions', { done: Math.min(keys.length, done + BATCH), total: keys.length })
  }
}
