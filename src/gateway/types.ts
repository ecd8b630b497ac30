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

/** The decimal next to what is `written`, which binary floating point had shifted. */
export type RoundedAmount = {
  id: string
  field: 'amount' | 'refundedAmount'
  written: string
  amount: string
}

export type PaymentList = {
  payments: ListedPayment[]
  /** Why each cannot be read, as a predicate, and its masked JSON. Without an id it may be any payment's. */
  unreadable: { id: string | undefined; reason: string; text: string }[]
  rounded: RoundedAmount[]
  /** The entries as a JSON array, with every member they had, masked, at most 64 KiB. */
  json: string
  /** How much of the entries is left out there. */
  omittedBytes: number
}

/** What the body of a response means: `unknown` is no answer as the specification defines it. */
export type GatewayAnswer<T> =
  | { kind: 'answered'; value: T; message: string }
  | { kind: 'rejected'; code: string; message: string }
  | { kind: 'unknown'; reason: string }

/** An answer, or why there is none, and what is kept of it as evidence beside its value (`CallRecord.received`). */
export type Read<T> = { answer: T; received: string | undefined }

export type GatewayCommand = 'QUERY_PT' | 'REFUND'

/**
 * What is known after a call, in the classes that decide about money: `answered` (code 0), `rejected` (a valid
 * answer with another code), `unavailable` (no byte was written), `unknown` (anything else once a byte may have
 * left).
 */
export type GatewayOutcome<T = unknown> =
  | GatewayAnswer<T>
  /** `paused`: the circuit breaker is open, so the call was not attempted. */
  | { kind: 'unavailable'; reason: string; paused?: true }

export type OutcomeKind = GatewayOutcome['kind']

/**
 * The HMAC of the SHA-256 of a request's bytes, with the id of its key: proof of what was sent. A plain hash
 * would let a weak secret be guessed offline, since every byte but the secret behind its `SecureHash` is known.
 */
export type BodyHmac = ReturnType<Encryption['fingerprint']>

/** The facts of a call that are stored as proof. */
export type CallRecord = {
  command: GatewayCommand
  bodyHmac: BodyHmac
  durationMs: number
  httpStatus: number | undefined
  /**
   * What was received, as masked JSON of at most 64 KiB: of an answer to QUERY_PT that was read, the members
   * beside its code, message and entries; of any other answer, everything.
   */
  received?: string | undefined
}

export type GatewayCall<T> = { outcome: GatewayOutcome<T>; record: CallRecord }

/** A call whose bytes are final, so that they can be recorded before they are sent. */
export type PreparedCall<T> = {
  bodyHmac: BodyHmac
  /** Sends the request once, with the breaker's permit if the caller has one. Never rejects. */
  send(signal?: AbortSignal, permit?: BreakerPermit): Promise<GatewayCall<T>>
}
