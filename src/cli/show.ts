import type { Command } from 'commander'
import { ConfigError, readSome } from '../config/environment.ts'
import { describeEntry } from '../console/timeline.ts'
import { showTo } from '../console/view.ts'
import { describeNext, describeReceiver } from '../console/words.ts'
import type { ReadDatabase } from '../db/reads.ts'
import type { TransactionKey } from '../db/transaction-key.ts'
import { readAccountHold } from '../decisions/holds.ts'
import { DomainError } from '../errors.ts'
import { Id } from '../http/fields.ts'
import { listRefunds } from '../refunds/find.ts'
import { showRefund } from '../refunds/view.ts'
import { findObjects, type SearchHit } from '../search.ts'
import { readTransactions } from '../transactions/find-transactions.ts'
import { readTimeline, type TimelineRow } from '../transactions/timeline.ts'
import { showTransaction, type TransactionView } from '../transactions/view.ts'
import { openEncryption } from './database.ts'
import { listMerchants } from './lists.ts'
import { type Json, jsonOption, readAs } from './options.ts'
import { type Cli, formatTable, NO_KEY } from './print.ts'

/** Hits that are listed at most, and refunds of a transaction that are shown. */
const LIMITS = { hits: 20, refunds: 200, timeline: 200 }

/** The command line speaks English, in UTC, and writes amounts as the API does. */
const VIEW = { language: 'en', zone: 'UTC', plainAmounts: true } as const

type ShowOptions = Json & { merchant?: string }

/** Adds `show`, which tells the story of one transaction. */
export function addShowCommand(program: Command, cli: Cli): void {
  program
    .command('show')
    .description('tell the story of a transaction, found by any id; exit code 1 if there is none')
    .argument('<id>', 'of a transaction, payment, refund or order, or a reference', readAnyId)
    .option('--merchant <code>', 'only of this merchant account')
    .addOption(jsonOption())
    .addHelpText('after', EXAMPLES)
    .action(async (id: string, { merchant, json }: ShowOptions) => {
      const found = await cli.onDatabase(async (sql, db) => {
        const hits = await findHits(sql, await listMerchants(sql, merchant), id)
        const [only, another] = hits
        return only && !another ? await readStory(cli, { sql, db }, only) : hits
      })
      if (!Array.isArray(found)) {
        const { transaction, refunds, timeline } = found
        const api = { transaction, refunds: refunds.map(({ shown }) => shown), timeline }
        return cli.emit(json, api, json ? '' : showTo(VIEW, () => formatStory(found)))
      }
      if (found.length === 0)
        throw new DomainError('not_found', `nothing has the id ${id}; ${HINT}`)
      cli.emit(json, { data: found }, formatTable(HIT_HEADINGS, found.map(formatHit)))
      cli.printError(`several transactions match: show one by its transaction, with --merchant\n`)
      cli.setExitCode(1)
    })
}

const EXAMPLES = `
Examples:
  cli show DH1                                 an order
  cli show 1439211 --merchant UFLIYL --json    a payment, as the API has it`

const HINT = 'ask the gateway about a transaction with POST /v1/transactions/{id}/sync'

const readAnyId = readAs(Id, 'Write 1 to 128 printable characters.')

const HIT_HEADINGS = ['TRANSACTION', 'MERCHANT', 'FOUND BY', 'ID']

const formatHit = ({ transactionId, merchantCode, matched, id }: SearchHit) => {
  return [transactionId, merchantCode, matched, id]
}

/** Finds transactions, each once: exact matches if there are any. The search leaves out what was only asked for. */
async function findHits(
  sql: ReadDatabase['sql'],
  merchants: readonly string[],
  id: string,
): Promise<SearchHit[]> {
  const options = { withRefunds: true, limit: LIMITS.hits }
  const ranked = await findObjects({ sql }, merchants, id.trim(), options)
  const exact = ranked.filter(({ rank }) => rank === 0)
  const hits = new Map<string, SearchHit>()
  for (const { rank: _, ...hit } of exact.length > 0 ? exact : ranked) {
    const key = JSON.stringify([hit.merchantCode, hit.transactionId])
    if (!hits.has(key)) hits.set(key, hit)
  }
  if (hits.size > 0) return [...hits.values()]
  const keys = merchants.map((merchantCode) => ({ merchantCode, transactionId: id.trim() }))
  const known = await readTransactions(sql, keys)
  return Array.from(known.values(), ({ transaction: { merchantCode, transactionId } }) => {
    const found = { type: 'transaction', matched: 'transactionId' } as const
    return { ...found, id: transactionId, merchantCode, transactionId }
  })
}

type Story = Awaited<ReturnType<typeof readStory>>

async function readStory(
  cli: Cli,
  database: ReadDatabase,
  { merchantCode, transactionId }: TransactionKey,
) {
  const { sql } = database
  const key = { merchantCode, transactionId }
  const [found] = (await readTransactions(sql, [key])).values()
  if (!found) throw new DomainError('transaction_not_found', `No transaction ${transactionId}`)
  const encryption = await openIfSet(cli, sql)
  const settings = readSome(cli.env, [
    'GATEWAY_FIELD_PREFIX',
    'REFUND_APPROVAL_WITHIN_MS',
    'REFUND_SEND_WITHIN_MS',
    'REFUND_RESOLVE_FOR_MS',
  ])
  const accountHold = await readAccountHold(sql, merchantCode)
  const held = new Set(found.payments.flatMap((one) => (one.hold ? [one.paymentId] : [])))
  const filter = { merchants: [merchantCode], transactionId }
  const { rows } = await listRefunds(database, filter, LIMITS.refunds, undefined)
  const refunds = rows.map((one) => {
    const isHeld = Boolean(accountHold ?? one.refund.hold) || held.has(one.refund.paymentId)
    const next = showTo(VIEW, () => describeNext(one.refund, isHeld, settings))
    return { shown: showRefund(encryption, one), next }
  })
  const timeline: TimelineRow['entry'][] = []
  for (let after: TimelineRow['position'] | undefined, isOver = false; !isOver; ) {
    const request = { transaction: key, withRefunds: true, limit: LIMITS.timeline, after }
    const page = await readTimeline({ config: settings, sql }, request)
    isOver = page.length <= LIMITS.timeline
    const shown = page.slice(0, LIMITS.timeline)
    timeline.push(...shown.map(({ entry }) => entry))
    after = shown.at(-1)?.position
  }
  return { transaction: showTransaction(found), accountHold, refunds, timeline }
}

/** Without the key a story is better than none: only the receivers are missing. */
async function openIfSet({ env, printError }: Cli, sql: ReadDatabase['sql']) {
  try {
    return await openEncryption(sql, env)
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    printError(`warning: receivers cannot be read: ${error.lines.join('; ')}\n`)
    return NO_KEY
  }
}

function formatStory({ transaction: t, accountHold, refunds, timeline }: Story): string {
  const held = accountHold ? [['account', `held by ${accountHold.by}: ${accountHold.reason}`]] : []
  const payments = t.payments.map((p) => {
    const amounts = [p.amount, p.refundedAmount, p.refundableAmount, p.currency ?? '-']
    const flags = (['unrecognised', 'missing', 'unreadable'] as const).filter((flag) => p[flag])
    const notes = [...flags, ...(p.hold ? [`held by ${p.hold.by}: ${p.hold.reason}`] : [])]
    return [
      p.id,
      p.status,
      ...amounts,
      p.paymentMethod,
      formatTime(p.firstSeenAt),
      notes.join(', '),
    ]
  })
  const listed = refunds.map(({ shown: r, next }) => {
    const to = r.receiver ? describeReceiver(r.receiver) : '-'
    const then = next.at === undefined ? next.text : `${next.text} ${formatTime(next.at)}`
    const amount = [r.amount, r.currency ?? '-']
    return [
      r.id,
      r.status,
      ...amount,
      r.paymentId,
      formatTime(r.requestedAt),
      r.requestedBy,
      to,
      then,
    ]
  })
  const lines = timeline.map((entry) => {
    const { actor, title, details } = describeEntry(entry, t.currency)
    return [formatTime(entry.at), actor, [title, ...details].join('; ')]
  })
  return [
    formatTable(['TRANSACTION', t.transactionId], [...listFacts(t), ...held]),
    formatTable(PAYMENT_HEADINGS, payments),
    ...(listed.length > 0 ? [formatTable(REFUND_HEADINGS, listed)] : []),
    formatTable(['TIME (UTC)', 'WHO', 'WHAT'], lines),
  ].join('\n')
}

const AMOUNTS = ['AMOUNT', 'REFUNDED', 'REFUNDABLE', 'CURRENCY']
const PAYMENT_HEADINGS = ['PAYMENT', 'STATUS', ...AMOUNTS, 'METHOD', 'FIRST SEEN (UTC)', 'NOTES']
const REFUND_HEADINGS = [
  ...['REFUND', 'STATUS', 'AMOUNT', 'CURRENCY', 'PAYMENT', 'REQUESTED (UTC)', 'BY'],
  ...['RECEIVER', 'NEXT'],
]

function listFacts(t: TransactionView): string[][] {
  const { status, asOf, nextAttemptAt, attempts, lastError } = t.sync
  const sync = [
    status,
    ...(asOf === null ? ['never answered'] : [`answer of ${formatTime(asOf)}`]),
    ...(nextAttemptAt === null ? [] : [`asks next ${formatTime(nextAttemptAt)}`]),
    ...(attempts === 0 ? [] : [`${attempts} failed in a row`]),
    ...(lastError === null ? [] : [lastError]),
  ]
  const expected = t.expectedAmount === null ? 'unknown' : t.expectedAmount
  const more = t.amountMatches === false ? ', which differs from what was paid' : ''
  return [
    ['account', t.merchantCode],
    ['order', [t.orderId ?? '-', ...(t.merchantTxnId ? [`(${t.merchantTxnId})`] : [])].join(' ')],
    ['state', t.final ? `${t.state}, final` : t.state],
    ['paid', `${t.paidAmount} ${t.currency ?? ''}${t.duplicatePayment ? ', more than once' : ''}`],
    ['refunded', `${t.refundedAmount} ${t.currency ?? ''}`],
    ['expected', `${expected}${more}`],
    ['sync', sync.join(', ')],
    ['notified', `${t.ipnCount} times, first seen ${formatTime(t.firstSeenAt)}`],
    ...(t.sameOrder.length > 0 ? [['same order', t.sameOrder.join(', ')]] : []),
  ]
}

/** `2026-11-21 09:33:03.213`, in UTC. */
export const formatTime = (iso: string) => iso.replace('T', ' ').replace('Z', '')
