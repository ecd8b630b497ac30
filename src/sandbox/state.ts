import type { Agent } from 'undici'
import type { TokenSource } from '../config/accounts.ts'
import type { BackgroundTasks } from './background-tasks.ts'
import type { Journal } from './journal.ts'
import type { Fault, RefundMode, SandboxCard, TokenStore } from './types.ts'

/** What the specification leaves open about cards: the `code` of a success, and the pages of a list. */
export type CardRules = { successCode: number; firstPage: number; maxPageSize: number }

export type Settings = {
  fieldPrefix: string
  paygatePath: string
  refundHashExclude: readonly string[]
  ipnHashExclude: readonly string[]
  refundMs: number
  cards: CardRules
  ipnRetryMs: readonly number[]
}

/** A merchant account of the gateway. Without `token` its default client reads its cards. */
export type SandboxAccount = {
  merchantCode: string
  secret: string
  token?: TokenSource | undefined
}

/** A payment. Amounts are decimal strings; `refundedAmountShown` overrides the one of QUERY_PT. */
export type SandboxPayment = {
  id: string
  transaction: SandboxTransaction
  status: string
  amount: string
  paymentMethod: string
  refundedAmount: string
  refundedAmountShown: string | null
  /** Whether QUERY_PT lists it. */
  listed: boolean
  refunds: SandboxRefund[]
}

export type SandboxTransaction = {
  transactionId: string
  merchant: SandboxMerchant
  orderId: string
  merchantTxnId: string
  currency: string
  /** The order's amount in its notifications; null for the amount of the payment they report. */
  amount: string | null
  extData: Readonly<Record<string, unknown>> | undefined
  /** Sent in the notification; `transAmount` of one that was paid in part, unsigned. */
  payToken?: string | undefined
  transAmount?: string | undefined
  createdAt: string
  payments: SandboxPayment[]
}

/** A refund. It keeps the `mode` that was set when it was accepted. */
export type SandboxRefund = {
  requestId: string
  transId: string
  payment: SandboxPayment
  amount: string
  status: 'accepted' | 'succeeded' | 'failed'
  mode: RefundMode
  /** Replaces the fee of the mode. */
  fee?: string | undefined
  successNotified: boolean
  acceptedAt: string
}

/** A ledger entry: money returned to a payer. */
export type Movement = {
  requestId: string
  transId: string
  paymentId: string
  merchantCode: string
  amount: string
  at: string
}

/** The records of one merchant. Identifiers are unique within a merchant, not across merchants. */
export type SandboxMerchant = {
  merchantCode: string
  secret: string
  transactions: Map<string, SandboxTransaction>
  payments: Map<string, SandboxPayment>
  refunds: Map<string, SandboxRefund[]>
  cards: Map<string, SandboxCard>
}

/** The in-memory state of one sandbox, lost when it stops. */
export type SandboxState = {
  settings: Settings
  merchants: Map<string, SandboxMerchant>
  faults: Fault[]
  journal: Journal
  ledger: Movement[]
  refundMode: RefundMode
  ipnUrl: string | undefined
  lastPaymentId: number
  /** Decides whether a fault applies to a request. */
  random: () => number
  /** Used by IPN deliveries, whose order varies from run to run: `random` stays repeatable. */
  deliveryRandom: () => number
  tokens: TokenStore
  background: BackgroundTasks
  agent: Agent
}

/** Creates empty records for each account; control routes default to the first account. */
export function createMerchants(accounts: readonly SandboxAccount[]): Map<string, SandboxMerchant> {
  return new Map(
    accounts.map(({ merchantCode, secret }) => [
      merchantCode,
      {
        merchantCode,
        secret,
        transactions: new Map(),
        payments: new Map(),
        refunds: new Map(),
        cards: new Map(),
      },
    ]),
  )
}

/** Returns the next numeric payment identifier that the merchant has not used. */
export function nextPaymentId(state: SandboxState, merchant: SandboxMerchant): string {
  do state.lastPaymentId += 1
  while (merchant.payments.has(String(state.lastPaymentId)))
  return String(state.lastPaymentId)
}
