import { setMaxListeners } from 'node:events'
import { setTimeout } from 'node:timers/promises'
import type { Agent } from 'undici'
import type { TokenSource } from '../config/accounts.ts'
import type { SignatureVerdict } from '../gateway/signature.ts'
import {
  ControlError,
  type Fault,
  type FaultKind,
  type RefundMode,
  type SandboxCard,
  type TokenMode,
} from './input.ts'

/** What the specification leaves open: the `code` of a success, and the pages of a list. */
export type CardRules = { successCode: number; firstPage: number; maxPageSize: number }

/** Without `token`, the account's default client reads its cards. */
export type SandboxAccount = {
  merchantCode: string
  secret: string
  token?: TokenSource | undefined
}

export const DEFAULTS = {
  fieldPrefix: 'svc',
  paygatePath: '/api/v1/paygate/svcpay',
  refundHashExclude: ['RequestID'] as readonly string[],
  ipnHashExclude: ['TransAmount', 'ExtData'] as readonly string[],
  /** Milliseconds after which an accepted refund settles by itself. */
  refundMs: 500,
  /** Milliseconds before each further attempt to deliver a notification. */
  ipnRetryMs: [1_000, 2_000, 5_000, 10_000] as readonly number[],
  cards: { successCode: 1, firstPage: 1, maxPageSize: 100 } as CardRules,
  tokenLifetimeS: 3_600,
  /** Seeds fault probabilities and the shuffling of notifications. */
  seed: 1,
  journalLimit: 100_000,
}

export type SandboxOptions = Partial<typeof DEFAULTS> & {
  /** Control requests that name no account use the first one. */
  accounts: readonly SandboxAccount[]
  /** A token that can read the cards of all accounts. */
  sharedToken?: TokenSource | undefined
  /** Where notifications are sent; none are sent while it is unset. */
  ipnUrl?: string
  host?: string
  /** 0 selects a free port. */
  port?: number
}

/** Amounts are decimal strings. `refundedAmountShown` overrides what QUERY_PT shows. */
export type SandboxPayment = {
  id: string
  transaction: SandboxTransaction
  status: string
  amount: string
  paymentMethod: string
  refundedAmount: string
  refundedAmountShown: string | null
  listed: boolean
  refunds: SandboxRefund[]
}

export type SandboxTransaction = {
  transactionId: string
  merchant: SandboxMerchant
  orderId: string
  merchantTxnId: string
  currency: string
  /** The amount of the order in notifications; null for that of the payment they report. */
  amount: string | null
  extData: Readonly<Record<string, unknown>> | undefined
  /** Sent in notifications, `transAmount` unsigned: what was paid of the order. */
  payToken?: string | undefined
  transAmount?: string | undefined
  createdAt: string
  payments: SandboxPayment[]
}

export type SandboxRefund = {
  requestId: string
  transId: string
  payment: SandboxPayment
  amount: string
  status: 'accepted' | 'succeeded' | 'failed'
  /** As it was when the refund was accepted. */
  mode: RefundMode
  /** Replaces the fee of the mode. */
  fee?: string | undefined
  successNotified: boolean
  acceptedAt: string
}

type Movement = {
  requestId: string
  transId: string
  paymentId: string
  merchantCode: string
  amount: string
  at: string
}

/** Ids are unique within a merchant, not across merchants. */
export type SandboxMerchant = {
  merchantCode: string
  secret: string
  transactions: Map<string, SandboxTransaction>
  payments: Map<string, SandboxPayment>
  refunds: Map<string, SandboxRefund[]>
  cards: Map<string, SandboxCard>
}

type DeliveryOutcome = 'sending' | 'acknowledged' | 'refused' | 'unanswered'

/**
 * A request received, or an attempt to deliver a notification. An entry has the members of its command; unknown ones
 * are null. `status` and `code` were sent in the answer, `workStatus` and `workCode` are the result of the execution:
 * a fault makes them differ. Only the verdict on a token is recorded, and only clients that exist.
 */
export type JournalEntry = {
  command: string
  at: string
  outcome: 'received' | 'answered' | FaultKind | DeliveryOutcome
  status?: number | null
  code?: number | null
  workStatus?: number | null
  workCode?: number | null
  merchantCode?: string | null
  transactionId?: string | null
  paymentId?: string | null
  requestId?: string | null
  signature?: SignatureVerdict | 'unchecked'
  rawBodySha256?: string
  params?: Readonly<Record<string, unknown>>
  url?: string
  attempt?: number
  respcode?: number | null
  operation?: 'detail' | 'list'
  token?: 'accepted' | 'missing' | 'unknown' | 'expired'
  virtualCardRequestId?: string | null
  query?: Readonly<Record<string, string>>
  language?: string | null
  clientId?: string | null
}

export type TokenStore = {
  grants: readonly { source: TokenSource; merchantCodes: readonly string[] }[]
  /** `expiresAt` is on the clock of `performance.now()`. */
  issued: Map<string, { merchantCodes: readonly string[]; expiresAt: number }>
  mode: TokenMode
}

export type SandboxState = {
  settings: typeof DEFAULTS
  merchants: Map<string, SandboxMerchant>
  faults: Fault[]
  journal: JournalEntry[]
  ledger: Movement[]
  refundMode: RefundMode
  ipnUrl: string | undefined
  lastPaymentId: number
  /** Decides whether a fault applies to a request. */
  random: () => number
  /** For deliveries, whose order varies from run to run, so that `random` stays repeatable. */
  deliveryRandom: () => number
  tokens: TokenStore
  background: ReturnType<typeof createBackgroundTasks>
  agent: Agent
  /** What the last form did, or why it did nothing. `at` is on the clock of `performance.now()`. */
  formResult?: { tone: 'good' | 'bad'; text: string; at: number }
}

/** Finds a merchant, by default the first one. @throws ControlError 422 if there is none */
export function findMerchant(
  { merchants }: SandboxState,
  merchantCode: string | undefined,
): SandboxMerchant {
  const [first] = merchants.values()
  const merchant = merchantCode === undefined ? first : merchants.get(merchantCode)
  if (merchant === undefined) throw new ControlError(422, 'merchantCode', 'no such account')
  return merchant
}

/** Without a code, an object is in the first account that has the id. */
export type ObjectKey = { id: string; merchantCode: string | undefined }

/** @throws ControlError 404 */
export function findTransaction(state: SandboxState, key: ObjectKey): SandboxTransaction {
  return findObject(state, key, 'transactionId', ({ transactions }) => transactions.get(key.id))
}

/** @throws ControlError 404 */
export function findPayment(state: SandboxState, key: ObjectKey): SandboxPayment {
  return findObject(state, key, 'paymentId', ({ payments }) => payments.get(key.id))
}

/** Finds the refunds with a request id, the oldest first. @throws ControlError 404 if there is none */
export function findRefunds(state: SandboxState, key: ObjectKey): SandboxRefund[] {
  return findObject(state, key, 'requestId', ({ refunds }) => refunds.get(key.id))
}

function findObject<T>(
  state: SandboxState,
  { id, merchantCode }: ObjectKey,
  name: string,
  find: (merchant: SandboxMerchant) => T | undefined,
): T {
  const merchants =
    merchantCode === undefined ? state.merchants.values() : [findMerchant(state, merchantCode)]
  for (const merchant of merchants) {
    const found = find(merchant)
    if (found !== undefined) return found
  }
  throw new ControlError(404, name, `unknown: ${id}`)
}

export function createBackgroundTasks() {
  const stopping = new AbortController()
  const { signal } = stopping
  setMaxListeners(0, signal)
  const running = new Set<Promise<unknown>>()
  return {
    /** Resolves `true` after `ms` milliseconds, or `false` immediately when the sandbox stops. */
    async wait(ms: number): Promise<boolean> {
      if (signal.aborted || ms <= 0) return !signal.aborted
      return await setTimeout(ms, true, { signal }).catch(() => false)
    },
    /** Starts a task, which must not reject, without waiting for it. */
    run(task: () => Promise<unknown>): void {
      if (signal.aborted) return
      const work = task().finally(() => running.delete(work))
      running.add(work)
    },
    /** Cancels all waits, and resolves once all tasks have ended. */
    async stop(): Promise<void> {
      stopping.abort()
      await Promise.allSettled(running)
    },
  }
}
