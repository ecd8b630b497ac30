import postgres from 'postgres'
import { z } from 'zod'
import { runConcurrently } from '../../bench/refunds.ts'
import { type Follower, readFeed } from './feed.ts'
import type { GatewayControl, JournalEntry } from './gateway.ts'
import type { Ledgers, PaymentFacts, Sent, Shown, Stored } from './ledgers.ts'
import type { Load } from './load.ts'
import type { Receiver } from './receiver.ts'

const ShownPayment = z.object({
  id: z.string(),
  transactionId: z.string(),
  status: z.string(),
  amount: z.string(),
  refundedAmount: z.string(),
})
const ShownTransaction = z.object({ transactionId: z.string(), payments: z.array(ShownPayment) })
const ShownRefund = z.object({
  id: z.string(),
  paymentId: z.string(),
  amount: z.string(),
  status: z.string(),
})

export type Sources = {
  load: Pick<Load, 'transactionIds' | 'refunds' | 'synced'>
  follower: Follower
  receiver: Receiver | undefined
  gateway: GatewayControl
  /** Refunds that the suite made fail at the gateway. */
  failed: string[]
  databaseUrl: string
  apiUrl: string
  key: string
}

/** How long a transaction may be due before it counts as stuck. */
const OVERDUE = '5 seconds'

/** Reads the ledgers of all sides, each from its own source. */
export async function gatherLedgers(sources: Sources): Promise<Ledgers> {
  const journal = await sources.gateway.readJournal('ipn')
  const payments: PaymentFacts[] = []
  await runConcurrently(sources.load.transactionIds, async (id) => {
    payments.push(...(await sources.gateway.readPayments(id)))
  })
  const acknowledged = journal.filter(({ outcome }) => outcome === 'acknowledged')
  return {
    sent: { ...readSent(acknowledged), synced: sources.load.synced, refunds: sources.load.refunds },
    stored: await readStored(sources.databaseUrl),
    shown: await readShown(sources.apiUrl, sources.key),
    moved: {
      payments,
      movements: await sources.gateway.readLedger(),
      failed: sources.failed,
      told: acknowledged.flatMap(({ requestId }) => requestId ?? []),
    },
    feed: {
      read: await readFeed(sources.apiUrl, sources.key),
      followed: [...sources.follower.events],
      taken: sources.receiver && [...sources.receiver.taken],
    },
  }
}

function readSent(acknowledged: readonly JournalEntry[]): Pick<Sent, 'notifications'> {
  const notifications = acknowledged.map(({ rawBodySha256 = '', requestId, transactionId }) => ({
    sha256: rawBodySha256,
    transactionId: requestId ? undefined : (transactionId ?? undefined),
  }))
  return { notifications }
}

async function readStored(url: string): Promise<Stored> {
  const sql = postgres(url, { max: 1, onnotice: () => {} })
  try {
    return {
      notifications: await sql<Stored['notifications']>`
        select encode(sha256(convert_to(body, 'UTF8')), 'hex') as sha256,
          kind = 'refund' and handled_at is null as "isWaiting" from ipn_events`,
      transactions: await sql<Stored['transactions']>`
        select transaction_id as id, state, refunded_amount::text as "refundedAmount", final as "isFinal", lease_id is not null as "isLeased",
          coalesce(due_at < now() - ${OVERDUE}::interval, false) as "isOverdue",
          abandoned_at is not null as "isAbandoned" from transactions`,
      payments: await sql<Stored['payments']>`
        select payment_id as id, transaction_id as "transactionId", status, amount::text,
          refunded_amount::text as "refundedAmount" from payments`,
      refunds: await sql<Stored['refunds']>`
        select refund_id::text as id, idempotency_key as key, payment_id as "paymentId",
          amount::text, refused_code as "refusedCode", case status when 'sending' then 'pending' else status end as status from refunds`,
      discrepancies: await sql<Stored['discrepancies']>`select id::text from discrepancies`,
    }
  } finally {
    await sql.end({ timeout: 1 })
  }
}

async function readShown(apiUrl: string, key: string): Promise<Shown> {
  const transactions = await readPages(apiUrl, key, '/v1/transactions', ShownTransaction)
  return {
    transactions: transactions.map(({ transactionId: id, payments }) => ({ id, payments })),
    refunds: await readPages(apiUrl, key, '/v1/refunds', ShownRefund),
  }
}

async function readPages<T>(apiUrl: string, key: string, path: string, item: z.ZodType<T>) {
  const page = z.object({ data: z.array(item), nextCursor: z.string().nullable() })
  const found: T[] = []
  let cursor: string | null = ''
  while (cursor !== null) {
    const more = cursor === '' ? '' : `&cursor=${encodeURIComponent(cursor)}`
    const response = await fetch(`${apiUrl}${path}?limit=200${more}`, {
      headers: { authorization: `Bearer ${key}` },
    })
    const { data, nextCursor } = page.parse(await response.json())
    found.push(...data)
    cursor = nextCursor
  }
  return found
}

/** Outcomes after which delivery is retried; any other outcome ends it. */
const OPEN_OUTCOMES = ['sending', 'refused', 'unanswered', 'delay']

/** Counts deliveries that are in flight or will be retried: the gateway tries each `attempts` times. */
export function countPendingDeliveries(journal: readonly JournalEntry[], attempts: number): number {
  const begun = journal.filter(({ attempt }) => attempt === 1)
  const over = journal.filter(
    ({ outcome, attempt }) =>
      !OPEN_OUTCOMES.includes(outcome) || (attempt === attempts && outcome !== 'sending'),
  )
  return begun.length - over.length
}
