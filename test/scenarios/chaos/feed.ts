import { setTimeout as pause } from 'node:timers/promises'
import { z } from 'zod'

const Payment = z.object({
  id: z.string(),
  transactionId: z.string(),
  status: z.string(),
  amount: z.string(),
  refundedAmount: z.string(),
  asOf: z.string(),
})
const Transaction = z.object({
  state: z.string(),
  refundedAmount: z.string(),
  final: z.boolean(),
  payments: z.array(Payment),
})
const Refund = z.object({
  id: z.string(),
  paymentId: z.string(),
  amount: z.string(),
  status: z.string(),
  inferred: z.boolean(),
})
const Discrepancy = z.object({ id: z.string(), kind: z.string(), refundId: z.string().nullable() })

const about = { id: z.string(), transactionId: z.string() }
const PaymentEvent = z.object({
  ...about,
  type: z.enum(['payment.created', 'payment.updated']),
  data: Payment,
})
const TransactionEvent = z.object({
  ...about,
  type: z.enum(['transaction.final', 'sync.abandoned']),
  data: Transaction,
})
const RefundEvent = z.object({
  ...about,
  type: z.enum(['refund.created', 'refund.updated']),
  data: Refund,
})
const DiscrepancyEvent = z.object({
  ...about,
  type: z.literal('discrepancy.found'),
  data: Discrepancy,
})
/** The members of an event that the auditor checks. */
export const Event = z.discriminatedUnion('type', [
  PaymentEvent,
  TransactionEvent,
  RefundEvent,
  DiscrepancyEvent,
])
const Page = z.object({ data: z.array(Event), nextCursor: z.string() })

export type ToldEvent = z.infer<typeof Event>
export type PaymentEvent = z.infer<typeof PaymentEvent>
export type TransactionEvent = z.infer<typeof TransactionEvent>
export type RefundEvent = z.infer<typeof RefundEvent>

export type Follower = {
  /** The events it has read so far. */
  events: readonly ToldEvent[]
  stop(): Promise<void>
}

const PAGE = 200
const WAIT_S = 2
const PATIENCE_MS = 8_000
const AGAIN_MS = 100

async function readPage(
  apiUrl: string,
  key: string,
  cursor: string | undefined,
  { waitS = 0, signals = [] }: { waitS?: number; signals?: AbortSignal[] } = {},
) {
  const after = cursor === undefined ? '' : `&after=${cursor}`
  const response = await fetch(`${apiUrl}/v1/events?limit=${PAGE}&wait=${waitS}${after}`, {
    headers: { authorization: `Bearer ${key}` },
    signal: AbortSignal.any([...signals, AbortSignal.timeout(PATIENCE_MS)]),
  })
  return Page.parse(await response.json())
}

/** Reads the whole feed. */
export async function readFeed(apiUrl: string, key: string): Promise<ToldEvent[]> {
  const events: ToldEvent[] = []
  for (let cursor: string | undefined; ; ) {
    const page = await readPage(apiUrl, key, cursor)
    events.push(...page.data)
    if (page.data.length === 0) return events
    cursor = page.nextCursor
  }
}

/** Starts a reader that continues from its cursor after every error. */
export function followFeed(apiUrl: string, key: string): Follower {
  const events: ToldEvent[] = []
  const leaving = new AbortController()
  const waiting = { waitS: WAIT_S, signals: [leaving.signal] }
  async function follow(): Promise<void> {
    for (let cursor: string | undefined; !leaving.signal.aborted; ) {
      const page = await readPage(apiUrl, key, cursor, waiting).catch(() => undefined)
      if (page) {
        events.push(...page.data)
        cursor = page.nextCursor
      } else {
        await pause(AGAIN_MS)
      }
    }
  }
  const ended = follow()
  return {
    events,
    async stop() {
      leaving.abort()
      await ended
    },
  }
}
