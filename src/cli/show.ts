import { ConfigError, readSome } from '../config/environment.ts'
import { describeEntry } from '../console/timeline.ts'
import { showTo } from '../console/view.ts'
import { describeNext, describeReceiver } from '../console/words.ts'
import type { ReadDatabase } from '../db/reads.ts'
import { formatTransactionKey, type TransactionKey } from '../db/transaction-key.ts'
import { readAccountHold } from '../decisions/holds.ts'
import { DomainError, requireOnly } from '../errors.ts'
import { Id } from '../http/fields.ts'
import { listRefunds } from '../refunds/find.ts'
import { showRefund } from '../refunds/view.ts'
import { findObjects } from '../search.ts'
import { readTransactions } from '../transactions/find-transactions.ts'
import { readTimeline, type TimelineRow } from '../transactions/timeline.ts'
import { showTransaction } from '../transactions/view.ts'
import { type Cli, command } from './command.ts'
import { listMerchants, NO_KEY, openEncryption, PAGE, whileSought } from './database.ts'
import { formatCell, formatMembers, formatTable } from './print.ts'
import { Merchant } from './values.ts'

const MAX_HITS = 20

/** The command line is in English and UTC, and writes amounts as the API does. */
const VIEW = { language: 'en', zone: 'UTC', plainAmounts: true } as const

export const SHOW = command({
  name: 'show',
  description: 'tell the story of a transaction, found by any id; exit code 1 if there is none',
  args: ['id'],
  input: {
    id: Id.describe('of a transaction, payment, refund or order, or a reference'),
    merchant: Merchant,
  },
  examples: `Examples:
  cli show DH1                                 an order
  cli show 1439211 --merchant UFLIYL --json    a payment, as the API has it`,
  async run(cli, { id, merchant }) {
    return await cli.onDatabase(async (db) => {
      const merchants = await listMerchants(db.sql, merchant)
      const hits = await findHits(db.sql, merchants, id.trim())
      const [only, another] = hits
      if (!only) {
        const hint = 'ask the gateway about a transaction with POST /v1/transactions/{id}/sync'
        throw new DomainError('not_found', `nothing has the id ${id}; ${hint}`)
      }
      if (!another) return await tellStory(cli, db, only)
      cli.printError('several transactions match: show one by its transaction, with --merchant\n')
      const text = formatTable(hits, ['transactionId', 'merchantCode', 'matched', 'id'])
      return { value: { data: hits }, text, isFinding: true }
    })
  },
})

/** Finds transactions, each once: exact matches if there are any. The search leaves out those only asked for. */
async function findHits(sql: ReadDatabase['sql'], merchants: readonly string[], id: string) {
  const ranked = await findObjects(sql, merchants, id, { withRefunds: true, limit: MAX_HITS })
  const exact = ranked.filter(({ rank }) => rank === 0)
  const hits = (exact.length > 0 ? exact : ranked).map(({ rank: _, ...hit }) => hit)
  if (hits.length === 0) {
    const keys = merchants.map((merchantCode) => ({ merchantCode, transactionId: id }))
    const known = await readTransactions(sql, keys)
    return Array.from(known.values(), ({ transaction: { merchantCode } }) => {
      const found = { type: 'transaction', matched: 'transactionId' } as const
      return { ...found, id, merchantCode, transactionId: id }
    })
  }
  const found = hits.map(formatTransactionKey)
  return hits.filter((hit, at) => found.indexOf(formatTransactionKey(hit)) === at)
}

/** Tells about a transaction: as data what the API has of it, as text the words of the console. */
async function tellStory(cli: Cli, db: ReadDatabase, hit: TransactionKey) {
  const { sql } = db
  const { merchantCode, transactionId } = hit
  const key = { merchantCode, transactionId }
  const known = [...(await readTransactions(sql, [key])).values()]
  const found = requireOnly(known, 'transaction', transactionId)
  const settings = readSome(cli.env, [
    ...(['GATEWAY_FIELD_PREFIX', 'REFUND_APPROVAL_WITHIN_MS'] as const),
    ...(['REFUND_SEND_WITHIN_MS', 'REFUND_RESOLVE_FOR_MS', 'REFUNDS_ENABLED'] as const),
  ])
  const accountHold = await readAccountHold(sql, merchantCode)
  const held = found.payments.filter(({ hold }) => hold).map(({ paymentId }) => paymentId)
  const encryption = await openIfSet(cli, sql)
  const filter = { merchants: [merchantCode], transactionId }
  const { rows } = await listRefunds({ db }, filter, PAGE, undefined)
  const transaction = showTransaction(found)
  const refunds = await whileSought(encryption, () =>
    rows.map((one) => showRefund(encryption, one)),
  )
  const timeline = await readWhole(settings, db, key)
  const value = { transaction, refunds, timeline }
  if (cli.json) return { value, text: '' }
  return showTo(VIEW, () => {
    const { payments, ...facts } = transaction
    const steps = rows.map(({ refund }, at) => {
      const isHeld = Boolean(accountHold ?? refund.hold) || held.includes(refund.paymentId)
      const { text, at: then } = describeNext(refund, isHeld, settings)
      const { receiver = null, ...shown } = refunds[at] ?? {}
      const next = `${text} ${then === undefined ? '' : formatCell(then)}`.trim()
      return { ...shown, receiver: receiver && describeReceiver(receiver), next }
    })
    const entries = timeline.map((entry) => {
      const { actor: who, title, details } = describeEntry(entry, transaction.currency)
      return { at: entry.at, who, what: [title, ...details].join('; ') }
    })
    const parts = [
      formatMembers(accountHold ? { ...facts, accountHold } : facts),
      formatTable(payments, PAYMENT_COLUMNS),
      ...(steps.length > 0 ? [formatTable(steps, REFUND_COLUMNS)] : []),
      formatTable(entries, ['at', 'who', 'what']),
    ]
    return { value, text: parts.join('\n') }
  })
}

const PAYMENT_COLUMNS = [
  ...(['id', 'status', 'amount', 'refundedAmount', 'refundableAmount', 'currency'] as const),
  ...(['paymentMethod', 'firstSeenAt', 'unrecognised', 'missing', 'unreadable', 'hold'] as const),
]
const REFUND_COLUMNS = [
  ...(['id', 'status', 'amount', 'currency', 'paymentId', 'requestedAt', 'requestedBy'] as const),
  ...(['receiver', 'next'] as const),
]

async function readWhole(
  config: Parameters<typeof readTimeline>[0]['config'],
  db: ReadDatabase,
  key: TransactionKey,
) {
  const entries: TimelineRow['entry'][] = []
  for (let after: TimelineRow['position'] | undefined; ; ) {
    const request = { transaction: key, withRefunds: true, limit: PAGE, after }
    const page = await readTimeline({ db, config }, request)
    const shown = page.slice(0, PAGE)
    entries.push(...shown.map(({ entry }) => entry))
    if (page.length <= PAGE) return entries
    after = shown.at(-1)?.position
  }
}

/** Without the encryption key the story is told all the same, without receivers. */
async function openIfSet({ env, printError }: Cli, sql: ReadDatabase['sql']) {
  try {
    return await openEncryption(sql, env)
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    printError(`warning: receivers cannot be read: ${error.lines.join('; ')}\n`)
    return NO_KEY
  }
}
