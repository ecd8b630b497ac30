import type { BreakerPermit } from '../platform/concurrency/circuit-breaker.ts'
import type { Encryption } from '../platform/crypto/encryption.ts'

/** A payment as the gateway lists it (specification 2.4). */
export type ListedPayment = {
  id: string
  /** SUCCESS, FAILED, PROCESSING or an undocumented value, unchanged; empty when it is null or missing. */
  status: string
  /** Decimal strings. */
  amount: string
  refundedAmount: string
  paymentMethod: string
}

/** An amount that binary floating point had shifted; `written` is what the gateway sent. */
export type RoundedAmount = {
  id: string
  field: 'amount' | 'refundedAmount'
  written: string
  amount: string
}

export type PaymentList = {
  payments: ListedPayment[]
  /** `reason` is a predicate, `text` masked JSON. An entry without an id may be that of any payment. */
  unreadable: { id: string | undefined; reason: string; text: string }[]
  rounded: RoundedAmount[]
  /** The entries with all their members as a masked JSON array, at most 64 KiB. */
  json: string
  /** How many bytes of the entries are missing from `json`. */
  omittedBytes: number
}

/** What the body of a response means. `unknown`: not an answer as the specification defines it. */
export type GatewayAnswer<T> =
  | { kind: 'answered'; value: T; message: string }
  | { kind: 'rejected'; code: string; message: string }
  | { kind: 'unknown'; reason: string }

/** `received`: what is kept as evidence (`CallRecord.received`). */
export type Read<T> = { answer: T; received: string | undefined }

export type GatewayCommand = 'QUERY_PT' | 'REFUND'

/**
 * The outcomes that decide about money: `answered` (code 0), `rejected` (a valid answer with another code),
 * `unavailable` (no byte of the request was written), and `unknown` (anything else).
 */
export type GatewayOutcome<T = unknown> =
  | GatewayAnswer<T>
  /** `paused`: not attempted, because the circuit breaker is open. */
  | { kind: 'unavailable'; reason: string; paused?: true }

export type OutcomeKind = GatewayOutcome['kind']

/**
 * Proves what was sent: the HMAC of the SHA-256 of the request's bytes, with the id of its key. A plain hash would
 * allow a weak secret to be guessed offline, because everything else in the request is known.
 */
export type BodyHmac = ReturnType<Encryption['fingerprint']>

type CallRecord = {
  command: GatewayCommand
  bodyHmac: BodyHmac
  durationMs: number
  httpStatus: number | undefined
  /** Masked JSON, at most 64 KiB: of an `answered` QUERY_PT all but code, message and entries; else everything. */
  received?: string | undefined
}

export type GatewayCall<T> = { outcome: GatewayOutcome<T>; record: CallRecord }

/** A call whose bytes are final, so that it can be recorded before it is sent. */
export type PreparedCall<T> = {
  bodyHmac: BodyHmac
  /** Sends the request once. A caller that already holds a permit of the breaker passes it. Never rejects. */
  send(signal?: AbortSignal, permit?: BreakerPermit): Promise<GatewayCall<T>>
}
