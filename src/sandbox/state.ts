import type { Agent } from 'undici'
import type { TokenSource } from '../config.ts'
import type { Background } from './background.ts'
import type { SandboxCard } from './cards/card.ts'
import type { Tokens } from './cards/tokens.ts'
import type { Fault } from './faults/faults.ts'
import type { Journal } from './journal.ts'
import type { RefundMode } from './paygate/refund-mode.ts'

export type Settings = {
  fieldPrefix: string
  paygatePath: string
  refundHashExclude: readonly string[]
  ipnHashExclude: readonly string[]
  refundMs: number
  ipnRetryMs: readonly number[]
}

/** Without a `token` the account's cards are read with its default client. */
export type SandboxAccount = {
  merchantCode: string
  secret: string
  token?: TokenSource | undefined
}

/** Amounts are decimal strings. `refundedAmountShown` overrides what QUERY_PT says. */
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
  book: Book
  orderId: string
  merchantTxnId: string
  currency: string
  extData: Readonly<Record<string, unknown>> | undefined
  createdAt: string
  payments: SandboxPayment[]
}

/** `mode` is the refund mode of the moment the refund was accepted, and stays with it. */
export type SandboxRefund = {
  requestId: string
  transId: string
  payment: SandboxPayment
  amount: string
  status: 'accepted' | 'succeeded' | 'failed'
  mode: RefundMode
  successTold: boolean
  acceptedAt: string
}

/** Money that moved back to a payer. */
export type Movement = {
  requestId: string
  transId: string
  paymentId: string
  merchantCode: string
  amount: string
  at: string
}

/** Everything the gateway knows of one merchant; no identifier reaches across books. */
export type Book = {
  merchantCode: string
  secret: string
  transactions: Map<string, SandboxTransaction>
  payments: Map<string, SandboxPayment>
  refunds: Map<string, SandboxRefund[]>
  cards: Map<string, SandboxCard>
}

/** All of one sandbox, lost when it stops. */
export type SandboxState = {
  settings: Settings
  books: Map<string, Book>
  faults: Fault[]
  journal: Journal
  ledger: Movement[]
  refundMode: RefundMode
  ipnUrl: string | undefined
  lastPaymentId: number
  /** The dice of faults. Deliveries have dice of their own: when they are thrown nobody can foresee. */
  random: () => number
  deliveryRandom: () => number
  tokens: Tokens
  background: Background
  agent: Agent
}

/** An empty book for every account; the first account is the default of the control routes. */
export function openBooks(accounts: readonly SandboxAccount[]): Map<string, Book> {
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

/** The next numeric payment identifier that is free in the book. */
export function nextPaymentId(state: SandboxState, book: Book): string {
  do state.lastPaymentId += 1
  while (book.payments.has(String(state.lastPaymentId)))
  return String(state.lastPaymentId)
}
