import { createHash } from 'node:crypto'
import { Big } from 'big.js'
import type { FedEvent } from './events.ts'

// Where several accounts are audited together, every id is named within its account (`nameIn`): they use the same ones.

/**
 * `open`: anything may still happen. `rest`: everything has settled, was notified and shown, and all waits are over.
 * `settled`: people have decided everything by the gateway's ledger, too.
 */
export type Phase = 'open' | 'rest' | 'settled'

export type Amount = { paymentId: string; amount: string }

export type PaymentFacts = {
  id: string
  transactionId: string
  status: string
  amount: string
  refundedAmount: string
}

/**
 * Whether the commit of what was acknowledged, or the evidence of what happened, may be lost without a defect: it is
 * from between the moment to which the database was set back and the moment in which it was.
 */
type AtRisk = { isAtRisk: boolean }

/** A refund as an order system requested it, and the id that follows from its key. */
export type AskedRefund = Amount & { key: string; refundId: string }

/** A refund made at the gateway's portal. */
export type PortalRefund = Amount & {
  requestId: string
  /** Made before the service saw the payment, or saw it for good; otherwise after it had shown it. */
  isBefore: boolean
}

/** What was acknowledged to clients, and what they did themselves. */
export type Acknowledged = {
  /** The SHA-256 of a notification's bytes, and the transaction of a payment's notification. */
  notifications: ({ sha256: string; transactionId: string | undefined } & AtRisk)[]
  /** Transactions for which an order system requested a sync. */
  synced: ({ transactionId: string } & AtRisk)[]
  /** Every refund that was requested, whatever the answers, and when for the first time (ms). */
  asked: (AskedRefund & { atMs: number })[]
  /** Every 202 response, those to repeated requests included, with the id that it named. */
  refunds: (AskedRefund & AtRisk)[]
  /** Requests that were refused again and again, until their order system gave up. */
  refused: (Amount & { key: string; code: string })[]
  portal: PortalRefund[]
}

export type StoredRefund = Amount & {
  id: string
  key: string
  status: string
  inferred: boolean
  matched: boolean
  /** Attempts whose bytes may have left. */
  attempts: number
  /** The code of the gateway's answer to its only attempt, if that was a refusal. */
  refusedCode: string | null
  review: string | null
  /** Why it failed, and who says so. */
  failure: string | null
  failureSource: string | null
  /** It came back, and its amount is released. */
  released: boolean
  due: boolean
  /** An open discrepancy says that something is wrong with it, or with the refunded amount of its payment. */
  disputed: boolean
}

export type StoredPayment = PaymentFacts & {
  /** What was refunded when it was first seen. */
  atFirst: string
  /** An open discrepancy says that more was refunded than is known of. */
  unexplained: boolean
}

/** An attempt, as it was recorded before its bytes could leave (µs of the database's clock); no outcome while it lasts. */
export type StoredAttempt = {
  refundId: string
  paymentId: string
  at: number
  outcome: string | null
}

/** What the service's database holds. */
export type Stored = {
  /** With the payment of a refund's notification that was not applied yet. */
  notifications: { sha256: string; waitsFor: string | null }[]
  transactions: {
    id: string
    state: string
    refundedAmount: string
    isFinal: boolean
    isLeased: boolean
    isOverdue: boolean
    isAbandoned: boolean
  }[]
  payments: StoredPayment[]
  refunds: StoredRefund[]
  attempts: StoredAttempt[]
  /** Refunds that the service takes for ones made at the portal. */
  external: (Amount & { id: string; requestId: string; state: string })[]
  discrepancies: { id: string }[]
}

export type ShownPayment = PaymentFacts & { refundableAmount: string }

/** What its API shows to the key of each account. */
export type Shown = {
  transactions: { id: string; payments: ShownPayment[] }[]
  refunds: (Amount & { id: string; status: string })[]
}

/** Money that moved, or that the gateway has accepted to move (only where the phase is open). */
export type Movement = Amount & { requestId: string }

/** The truth: the gateway's own ledger. */
export type Moved = {
  /** Whether it refuses a request id that it has seen, and whether it refuses anything else. */
  dedupes: boolean
  refuses: boolean
  payments: PaymentFacts[]
  movements: (Movement & AtRisk & { atMs: number; isPending: boolean })[]
  /** Calls of REFUND that the gateway accepted. */
  accepted: ({ requestId: string } & AtRisk)[]
  /** Refunds that were accepted and failed. */
  failed: string[]
  /** Refunds whose notification the service acknowledged. */
  told: ({ requestId: string } & AtRisk)[]
  /** How often the bytes of a refund may have left, and of how many of these times the records were lost. */
  sends: ReadonlyMap<string, { times: number; lost: number }>
}

/** What its change feed contains. */
export type Fed = {
  /** All of it, of all accounts, by position. */
  read: readonly FedEvent[]
  /** The events of a reader of each account that followed it by cursor, one account after the other. */
  followed: readonly FedEvent[] | undefined
  /** The events accepted by a webhook receiver of each account registered before the storm. */
  taken: readonly FedEvent[] | undefined
}

/** A failure that the gateway told: in its answer to a REFUND, or in a notification. */
export type ToldFailure = {
  requestId: string
  code: string
  by: 'answer' | 'notification'
  /** When (world time), and how many answers to queries there were before. */
  at: number
  answers: number
}

/** An answer to a query: when it was asked for (world time), and the refunded amounts of the payments that it lists. */
export type QueryAnswer = { at: number; refunded: ReadonlyMap<string, string> }

/** What nobody may send from one moment to another (µs of the database's clock); without an end still. */
export type Hold = {
  target: 'merchant' | 'payment' | 'refund'
  id: string
  from: number
  until?: number
}

/** What only a test knows that plays one step after the other, and lets the gateway and people be wrong. */
export type Witnessed = {
  /** The most that the gateway ever showed to be refunded of a payment. */
  highest: ReadonlyMap<string, string>
  holds: readonly Hold[]
  /** Refunds whose cancellation was acknowledged. */
  cancelled: ReadonlySet<string>
  /** How long ago a refund was requested, or approved (ms). */
  waitedMs: ReadonlyMap<string, number>
  /** Ids sent again later than the service may rely on the gateway's memory. */
  repeatedLate: ReadonlySet<string>
  /** Refunds whose success the gateway notified, or a person decided. */
  successes: ReadonlySet<string>
  failures: readonly ToldFailure[]
  answers: readonly QueryAnswer[]
  /** The refunded amount that the newest answer showed when a refund was first sent. */
  baselines: ReadonlyMap<string, string>
  /** When a refund was first seen to have failed (world time). */
  failedAt: ReadonlyMap<string, number>
  /** Refunds that came back: how many people said so, and since when (world time). */
  saidReturned: ReadonlyMap<string, { people: number; at: number }>
  /** Refunds made elsewhere that a person decided never to have happened. */
  neverHappened: ReadonlySet<string>
  /** Those that may be part of the first sight: notified before it, or decided so by a person. */
  firstSight: ReadonlySet<string>
  /** Refunds that people decided against the ledger, and those of which the gateway said what is not true. */
  misjudged: ReadonlySet<string>
  misreported: ReadonlySet<string>
  /** Payments of which nobody can know what may move. */
  overdrawn: ReadonlySet<string>
  /** Tables in which a step of another account has changed rows of this one. */
  changedByOther: readonly string[]
}

/** All sides at one moment. What a test does not read is undefined or empty. */
export type Ledgers = {
  phase: Phase
  acknowledged: Acknowledged
  stored: Stored
  shown: Shown | undefined
  moved: Moved
  fed: Fed | undefined
  witnessed?: Witnessed
}

/** Names an object of an account. The ids of several accounts overlap. */
export function nameIn(merchantCode: string, id: string): string {
  return `${merchantCode}/${id}`
}

/** The account and the id in it. */
export function splitName(name: string): [merchantCode: string, id: string] {
  const at = name.indexOf('/')
  return [name.slice(0, at), name.slice(at + 1)]
}

/**
 * The name of the refund that a request under this key makes, computed from the published rule: the first 16 bytes
 * of a SHA-256, as a UUID of version 8.
 * @param key the idempotency key, named within its account
 */
export function nameRefundOf(key: string): string {
  const [merchantCode, text] = splitName(key)
  const hash = createHash('sha256')
  for (const part of ['ipn-processor/refund', '\0', merchantCode, '\0', text]) hash.update(part)
  const digits = [...hash.digest('hex').slice(0, 32)]
  digits[12] = '8'
  digits[16] = ((Number.parseInt(digits[16] ?? '0', 16) % 4) + 8).toString(16)
  const id = digits.join('').replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-')
  return nameIn(merchantCode, id)
}

/** An amount in ten-thousandths, the finest that is stored. */
export function units(amount: string): bigint {
  return BigInt(new Big(amount).times(10_000).toFixed(0))
}

/** Adds the amounts of one payment. */
export function sumOf(paymentId: string, ...lists: readonly (readonly Amount[])[]): bigint {
  const own = lists.flat().filter((one) => one.paymentId === paymentId)
  return own.reduce((total, { amount }) => total + units(amount), 0n)
}

/** Compares payments, amounts by value. */
export function isSamePayment(one: PaymentFacts, other: PaymentFacts | undefined): boolean {
  return (
    other !== undefined &&
    other.transactionId === one.transactionId &&
    other.status === one.status &&
    units(other.amount) === units(one.amount) &&
    units(other.refundedAmount) === units(one.refundedAmount)
  )
}

/** Compares refunds by payment and amount, amounts by value. */
export function isSameRefund(one: Amount, other: Amount | undefined): boolean {
  return other?.paymentId === one.paymentId && units(other.amount) === units(one.amount)
}

/** Removes duplicates. */
export function unique(items: readonly string[]): string[] {
  return [...new Set(items)]
}

/** Returns the items that occur more than once. */
export function findRepeated(items: readonly string[]): string[] {
  const seen = new Set<string>()
  return unique(items.filter((item) => seen.has(item) || !seen.add(item)))
}
