import type { Access } from '../access/types.ts'
import type { Context } from '../context.ts'
import { DomainError } from '../errors.ts'
import { compareAmounts } from '../money.ts'
import type { Fingerprint } from '../platform/crypto/encryption.ts'
import { byKey } from '../platform/postgres/by-key.ts'
import type { Tx } from '../platform/postgres/types.ts'
import { type FoundRefund, findRefund, isRequestedBy } from './find.ts'
import type { RefundParams, RequestedRefund } from './request-schema.ts'

/**
 * Reads the refund that a repeated request returns. Its key may read what it requested itself, also through a key that it
 * was rotated from or another of the same person; what others requested takes `refunds:read`, as it does everywhere.
 * @throws DomainError `scope_missing`
 */
export async function findReplayed(
  ctx: Context,
  access: Access,
  { merchantCode, refundId }: RequestedRefund,
): Promise<FoundRefund> {
  const found = await findRefund(ctx, [merchantCode], refundId)
  if (access.scopes.includes('refunds:read')) return found
  if (isRequestedBy(access, found.refund)) return found
  const detail =
    'This Idempotency-Key belongs to a refund that another API key has requested: do not request it again under another Idempotency-Key. To read it, this API key needs the scope refunds:read'
  throw new DomainError('scope_missing', detail)
}

/** A refund whose success was inferred from growth, and whose amount (decimal string) stays reserved until it is known. */
export type InferredRefund = { refundId: string; amount: string }

/**
 * Finds the oldest refund of payments whose success was inferred and whose amount is still reserved: the one that a
 * person can confirm, so that more is left to refund. The caller holds the rows of the payments.
 */
export async function findInferred(
  tx: Tx,
  merchantCode: string,
  paymentIds: readonly string[],
): Promise<InferredRefund | undefined> {
  const [found] = await tx<InferredRefund[]>`
    select r.refund_id as "refundId", r.amount from (
      select ${merchantCode}::text as merchant_code, payment_id
      from unnest(${[...paymentIds]}::text[]) as payment_id
    ) as k cross join lateral (
      select * from refunds as r
      where r.status = 'succeeded' and r.inferred and not r.matched and not r.in_first_sight
        and ${tx.unsafe(byKey('r', ['merchant_code', 'payment_id'], 'k'))} offset 0) as r
    order by r.requested_at, r.refund_id limit 1`
  return found
}

/** A stored refund, with the fingerprint of its request. */
export type Replay = Fingerprint & { refundId: string }

/** The payment to refund, and the refund that the idempotency key already belongs to, if any. */
export type RefundTarget = {
  merchantCode: string
  transactionId: string
  paymentId: string
  /** The refund that was stored under the idempotency key. */
  replay: Replay | null
}

/**
 * Finds the payment and the refund of the idempotency key. Runs before anything else is checked, so that a
 * replay gets the same answer whatever has changed since.
 * @param merchants the accounts the caller may use
 * @throws DomainError `payment_not_found`, `ambiguous_merchant`
 */
export async function findTarget(
  { sql }: { sql: Tx },
  merchants: readonly string[],
  paymentId: string,
  idempotencyKey: string,
): Promise<RefundTarget> {
  const [row, second] = await sql<(Omit<RefundTarget, 'replay'> & ReplayColumns)[]>`
    select p.merchant_code as "merchantCode", p.transaction_id as "transactionId",
      p.payment_id as "paymentId", r.refund_id as "refundId", r.fingerprint as value, r.fingerprint_key_id as "keyId"
    from (
      select merchant_code, ${paymentId}::text as payment_id, ${idempotencyKey}::text as idempotency_key
      from json_array_elements_text(${JSON.stringify(merchants)}::json) as merchant_code
    ) as k cross join lateral (
      select * from payments as p
      where ${sql.unsafe(byKey('p', ['merchant_code', 'payment_id'], 'k'))} limit 1
    ) as p left join lateral (
      select * from refunds as r
      where ${sql.unsafe(byKey('r', ['merchant_code', 'idempotency_key'], 'k'))} limit 1) as r on true`
  if (!row) throw new DomainError('payment_not_found', `No payment ${paymentId}`)
  if (!second) return readTarget(row)
  const detail = `Several merchant accounts have a payment ${paymentId}; select one with ?merchantCode=`
  throw new DomainError('ambiguous_merchant', detail)
}

/** The columns of the refund that the idempotency key belongs to. */
export type ReplayColumns = Replay | { refundId: null }

function readTarget(row: Omit<RefundTarget, 'replay'> & ReplayColumns): RefundTarget {
  const { merchantCode, transactionId, paymentId } = row
  return { merchantCode, transactionId, paymentId, replay: readReplay(row) }
}

/** The refund that the idempotency key belongs to; null for none. */
export function readReplay(row: ReplayColumns): Replay | null {
  if (row.refundId === null) return null
  const { refundId, value, keyId } = row
  return { refundId, value, keyId }
}

/**
 * Replays the refund of an idempotency key.
 * @param params from `formatParams`
 * @returns undefined when the key is new
 * @throws DomainError `idempotency_key_reused`, or `unavailable` when nobody can say whether it was
 */
export function replayRefund(
  { encryption, log }: Pick<Context, 'encryption' | 'log'>,
  { merchantCode, replay }: Pick<RefundTarget, 'merchantCode' | 'replay'>,
  params: string,
): RequestedRefund | undefined {
  if (!replay) return undefined
  const { refundId } = replay
  const checked = encryption.checkFingerprint(params, replay)
  if (checked === 'same') return { refundId, merchantCode, replayed: true }
  if (checked === 'unknown') {
    log.error(
      { merchantCode, refundId, keyId: replay.keyId },
      'a repeated refund request cannot be compared with the first: its fingerprint was made with another DATA_ENCRYPTION_KEY; restart with that key as DATA_ENCRYPTION_KEY_PREVIOUS',
    )
    const detail = `This Idempotency-Key belongs to refund ${refundId}, and its request cannot be compared with this one at the moment; read that refund, or repeat this request later with the same key`
    throw new DomainError('unavailable', detail, { retryAfterS: RETRY_AFTER_S })
  }
  throw new DomainError(
    'idempotency_key_reused',
    `This Idempotency-Key belongs to refund ${refundId}, which was requested with another payment, amount, receiver or reason; read that refund with GET /v1/refunds/${refundId} before anything else is refunded`,
    { extra: { refundId } },
  )
}

/** The key has to be set by an operator first (s). */
const RETRY_AFTER_S = 60

/** The idempotency key was stored by a concurrent request while this one waited for its locks. */
export class KeyTakenError extends Error {}

/**
 * Refunds of one payment that have not ended: each is asked about, and every answer of the gateway is compared with all of
 * them. Goods come back in fewer parts.
 */
export const MAX_OPEN = 100

/** The payment as the refusing statement read it. */
export type RefusingPayment = {
  status: string
  missing: boolean
  unreadable: boolean
  paymentMethod: string
  /** The reason of the payment's and of its account's hold; null where there is none. */
  held: string | null
  accountHeld: string | null
  /** Decimal string. */
  refundable: string
  /** Its refunds that have not ended, counted up to `MAX_OPEN`. */
  open: number
  /** It is no longer as the caller expected it. */
  stale: boolean
}

/**
 * Why a refund was not stored, the reason most relevant to the caller first.
 * @param inferred a refund of the payment that was inferred and is still reserved, if any
 */
export function explainRefusal(
  payment: RefusingPayment,
  { paymentId, amount, receiver }: RefundParams,
  inferred: InferredRefund | undefined,
): DomainError | KeyTakenError | StaleVersionError {
  if (payment.stale) return new StaleVersionError()
  const { status, missing, unreadable, paymentMethod, refundable, held, accountHeld } = payment
  if (status !== 'SUCCESS' || missing || unreadable) {
    const reason = missing
      ? 'the gateway no longer lists it'
      : unreadable
        ? 'the gateway lists it with values that cannot be read'
        : `it is ${status}`
    return new DomainError(
      'payment_not_refundable',
      `Payment ${paymentId} cannot be refunded: ${reason}`,
    )
  }
  if (held !== null) return new DomainError('held', `Payment ${paymentId} is held: ${held}`)
  if (accountHeld !== null) {
    return new DomainError('held', `Refunds of this merchant account are held: ${accountHeld}`)
  }
  if (paymentMethod === 'QR' && !receiver) {
    const message = 'is needed, because the payment was made by QR'
    return new DomainError('receiver_required', `receiver: ${message}`, {
      errors: [{ path: 'receiver', message }],
    })
  }
  const isNothingLeft = compareAmounts(refundable, '0') === 0
  if (isNothingLeft || compareAmounts(amount ?? refundable, refundable) > 0) {
    return refuseExceeding(`Only ${refundable} is left to refund`, refundable, inferred)
  }
  if (payment.open >= MAX_OPEN) {
    const detail = `${MAX_OPEN} refunds of payment ${paymentId} have not ended; repeat the request with the same key when one has`
    return new DomainError('too_many_open_refunds', detail)
  }
  return new KeyTakenError()
}

/**
 * Refuses a refund of more than is left. Where an inferred refund is still reserved it is named, with what makes it known.
 * @param refundable decimal string
 */
export function refuseExceeding(
  detail: string,
  refundable: string,
  inferred: InferredRefund | undefined,
): DomainError {
  const extra = { refundableAmount: refundable }
  if (!inferred) return new DomainError('exceeds_refundable', detail, { extra })
  const { refundId, amount } = inferred
  const route = `POST /v1/refunds/${refundId}/resolution {"outcome":"succeeded","reason":"…"}`
  return new DomainError(
    'exceeds_refundable',
    `${detail}. The success of refund ${refundId} of ${amount} was inferred, and its amount stays reserved until it is known: confirm it with ${route}, or wait for its notification`,
    { extra: { ...extra, inferredRefundId: refundId } },
  )
}

/** Something visible has changed since the caller decided on the refund: nothing is stored. */
export class StaleVersionError extends Error {}

/** Formats the version of a transaction for `expectedVersion`; a payment that moves to another one has another version. */
export function formatTransactionVersion(transaction: {
  transactionId: string
  version: number
}): string {
  return `${transaction.transactionId}@${transaction.version}`
}

/** The same in SQL, of a row of `transactions`. */
export function transactionVersionSql(alias: string): string {
  return `${alias}.transaction_id || '@' || ${alias}.version`
}
