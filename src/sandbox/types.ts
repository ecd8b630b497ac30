import type { TokenSource } from '../config/accounts.ts'

// Types that several folders of the sandbox share.

/** A configured fault. `delayMs` is 0 for kinds that do not delay. */
export type Fault = {
  command: 'QUERY_PT' | 'REFUND' | 'cards' | 'token' | 'ipn' | '*'
  kind:
    | 'delay'
    | 'http500'
    | 'reset'
    | 'garbage'
    | 'truncate'
    | 'acceptThenReset'
    | 'acceptThenHang'
    | 'acceptThenCode'
    | 'code'
  /** Remaining applications; undefined means no limit. */
  times?: number | undefined
  /** From 0 to 1. */
  probability: number
  delayMs: number
  code: number
}

export type FaultKind = Fault['kind']

/** The result of QUERY_PT or REFUND, before it is written with wire names. */
export type PaygateAnswer = { code: number; message: string; data?: unknown }

/** How refunds behave. */
export type RefundMode = {
  ipn: 'normal' | 'early' | 'late' | 'twice' | 'never'
  /** Refuse a request id that an accepted refund has used. */
  dedupes: boolean
  /** Refuse an amount above the remaining balance. */
  guardsBalance: boolean
  /** Include refunds that have not settled in the `refundedAmount` of QUERY_PT. */
  countsUnsettled: boolean
  /** What notifications of refunds name as the fee: a decimal string. */
  fee: string
  /** Milliseconds until an accepted refund settles; null: only a control request settles it. */
  settleMs: number | null
  /** Milliseconds from settlement to a late notification: ten times the settling time. */
  lateMs: number
}

/** A virtual card (specification 2.2, 2.3). Amounts are decimal strings; the number is masked. */
export type SandboxCard = {
  virtualCardRequestId: string
  requestId: string
  status: string
  cardData: {
    cardHolderName: string
    cardNumber: string
    cardExpiryDate: string
    cardBrand: string
  }
  cardPolicy: {
    policyRequestId: string
    policyRevision: number
    cardCurrency: string
    cardLimit: string
    minTransAmount: string
    maxTransAmount: string
    autoCloseCard: boolean
    activeOnCreate: boolean
    supportedMccGroup: string[]
  }
  extraInfo: Readonly<Record<string, unknown>>
  createdAt: string
  updatedAt: string
  /** Overrides and additional members of the JSON, sent unchecked. */
  raw: Readonly<Record<string, unknown>>
}

/** How tokens are issued. `lifetimeS`: seconds. `nested`: token members are sent under `data`. */
export type TokenMode = { lifetimeS: number; nested: boolean }

/** A static token or a client that can request one, and the merchants whose cards it can read. */
type TokenGrant = { source: TokenSource; merchantCodes: readonly string[] }

/** `expiresAt` is on the clock of `performance.now()`. */
type IssuedToken = { merchantCodes: readonly string[]; expiresAt: number }

/** Access to virtual cards: the configured grants and the tokens issued to clients. */
export type TokenStore = {
  grants: readonly TokenGrant[]
  issued: Map<string, IssuedToken>
  mode: TokenMode
}
