import { z } from 'zod'
import { type Asked, walkListing } from '../access/listing.ts'
import { readMerchantCodes } from '../config/config.ts'
import type { Context } from '../context.ts'
import type { TransactionKey } from '../db/transaction-key.ts'
import { requireOnly } from '../errors.ts'
import { runInTransaction } from '../platform/postgres/transaction.ts'
import type { Sql } from '../platform/postgres/types.ts'
import { readTransactions, TRANSACTIONS } from '../transactions/find-transactions.ts'
import { requeueTransactions } from '../transactions/request-sync.ts'
import { Transaction } from '../transactions/view.ts'
import { type Cli, command, UsageError } from './command.ts'
import { listMerchants, NO_KEY, readerOf, recordChange } from './database.ts'
import { mayTouch, showProgress } from './print.ts'
import { flag, Merchant } from './values.ts'

/** The options of a command that counts transactions, asks, and then makes them due. */
export const TOUCHING = {
  merchant: Merchant,
  dryRun: flag('only count'),
  yes: flag('do not ask, however many there are'),
}

export const REQUEUE = command({
  name: 'requeue',
  description: 'ask the gateway about transactions now, also about those that were abandoned',
  args: ['ids'],
  input: {
    ids: z.array(z.string()).default([]).describe('of transactions, in place of filters'),
    sync: Transaction.shape.sync.shape.status
      .exclude(['unconfirmed'])
      .optional()
      .describe('only with this state of sync'),
    ...TRANSACTIONS.query,
    ...TOUCHING,
  },
  examples: `Examples:
  cli requeue --sync abandoned --dry-run       how many were given up
  cli requeue --sync abandoned --from 2026-11-21T09:00:00Z --merchant UFLIYL
  cli requeue 240830080146NDTISR`,
  async run(cli, { ids, sync, merchant, dryRun, yes, ...filter }) {
    const isFiltered = [sync, ...Object.values(filter)].some((value) => value !== undefined)
    if (ids.length === 0 && !isFiltered && merchant === undefined) {
      throw new UsageError('name transactions, or a filter: --sync abandoned, --from, --merchant')
    }
    if (ids.length > 0 && isFiltered) throw new UsageError('name transactions or filters, not both')
    return await cli.onDatabase(async (db) => {
      const { sql } = db
      const merchants = await listMerchants(sql, merchant)
      const found =
        ids.length > 0
          ? await findById(sql, merchants, ids)
          : await findByFilter(db, merchants, filter, sync)
      const counts = { transactions: found.length }
      return await requeue(cli, sql, { operation: 'requeue', found, counts, dryRun, yes })
    })
  },
})

/** @throws DomainError unless each id is that of one transaction */
async function findById(sql: Sql, merchants: readonly string[], ids: readonly string[]) {
  const keys = ids.flatMap((transactionId) =>
    merchants.map((merchantCode) => ({ merchantCode, transactionId })),
  )
  const known = Array.from((await readTransactions(sql, keys)).values(), (one) => one.transaction)
  return ids.map((id) => {
    const found = known.filter(({ transactionId }) => transactionId === id)
    const { merchantCode, transactionId } = requireOnly(found, 'transaction', id)
    return { merchantCode, transactionId }
  })
}

/** Finds transactions by the filters of their list, and by the state of sync, which the list cannot filter by. */
export async function findByFilter(
  db: Context['db'],
  merchants: readonly string[],
  filter: Asked<typeof TRANSACTIONS.query>,
  status?: string,
): Promise<TransactionKey[]> {
  const keys: TransactionKey[] = []
  const ctx = { db, encryption: NO_KEY }
  for await (const page of walkListing(ctx, readerOf(merchants), TRANSACTIONS, filter)) {
    const found = page.filter(({ sync }) => sync.status === (status ?? sync.status))
    keys.push(...found.map(({ merchantCode, transactionId }) => ({ merchantCode, transactionId })))
  }
  return keys
}

type Selected = {
  operation: string
  found: readonly TransactionKey[]
  /** What was counted, by name. */
  counts: Readonly<Record<string, number>>
  dryRun?: boolean | undefined
  yes?: boolean | undefined
}

/**
 * Leaves out transactions of accounts that are no longer in the settings, and says so: no worker would ask about
 * them. If the command's own settings have no accounts, it takes all.
 */
export function skipDeparted(
  cli: Cli,
  found: readonly TransactionKey[],
): readonly TransactionKey[] {
  const codes = readMerchantCodes(cli.env)
  if (!codes) return found
  const asked = found.filter(({ merchantCode }) => codes.includes(merchantCode))
  const all = new Set(found.map(({ merchantCode }) => merchantCode))
  const departed = [...all].filter((code) => !codes.includes(code))
  if (departed.length > 0) {
    const what = `skipped ${found.length - asked.length} transactions of ${departed.join(', ')}`
    const why = 'no longer in the settings, so nobody asks about them'
    cli.printError(`${what}: ${why}; configure the account again to include them\n`)
  }
  return asked
}

/** Asks for confirmation, and makes transactions due. A refusal and a transaction that is skipped are findings. */
export async function requeue(
  cli: Cli,
  sql: Sql,
  { operation, found: all, counts, dryRun = false, yes }: Selected,
) {
  const found = skipDeparted(cli, all)
  const what = `this asks the gateway about ${found.length} transactions`
  const isRefused = !dryRun && !(await mayTouch(cli, found.length, what, yes))
  const isDone = !dryRun && !isRefused && found.length > 0
  if (isDone) await requeueAll(cli, sql, operation, found)
  const counted = Object.entries(counts).map(([name, count]) => {
    return `${count} ${name.replace(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`)}`
  })
  const done = isDone ? 'the gateway is asked about them' : 'nothing was changed'
  return {
    value: { ...counts, requeued: isDone ? found.length : 0 },
    text: `${counted.join(', ')}: ${done}\n`,
    isFinding: isRefused || found.length < all.length,
  }
}

/** How many transactions one commit changes, and keeps locked until it ends. */
const BATCH = 500

/** Makes transactions due, batch by batch, each with an entry of the audit log. */
async function requeueAll(
  cli: Cli,
  sql: Sql,
  operation: string,
  keys: readonly TransactionKey[],
): Promise<void> {
  const show = showProgress(cli, 'transactions', keys.length)
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
    show(Math.min(keys.length, done + BATCH))
  }
}
