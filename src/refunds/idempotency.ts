import { createHash } from 'node:crypto'
import type { Access } from '../access/types.ts'
import type { Context } from '../context.ts'
import { DomainError, invalidField, requireOnly } from '../errors.ts'
import { shortenAmount } from '../money.ts'
import type { Fingerprint } from '../platform/crypto/encryption.ts'
import { byKey } from '../platform/postgres/by-key.ts'
import { violatesConstraint } from '../platform/postgres/errors.ts'
import type { Tx } from '../platform/postgres/types.ts'
import { type FoundRefund, findRefund, isRequestedBy } from './find.ts'
import { StaleVersionError } from './request-rules.ts'
import type { RefundParams, RefundSubject } from './request-schema.ts'
import type { ShownRefund } from './view.ts'

const MAX_KEY = 255

/**
 * Parses a structured-field string (draft-ietf-httpapi-idempotency-key-header-07); without quotes it is the same key.
 * @throws DomainError `idempotency_key_missing`, or `invalid_request` for a key that cannot be stored
 */
export function readIdempotencyKey(header: string | undefined): string {
  const text = header?.trim() ?? ''
  const quoted = /^"((?:[\x20\x21\x23-\x5b\x5d-\x7e]|\\["\\])*)"$/.exec(text)?.[1]
  const key = quoted === undefined ? text : quoted.replace(/\\(["\\])/g, '$1')
  if (key === '') {
    throw new DomainError(
      'idempotency_key_missing',
      'Send an Idempotency-Key header with a unique string of your own for each refund',
    )
  }
  if (key.length > MAX_KEY || !/^[\x20-\x7e]+$/.test(key)) {
    throw invalidField('Idempotency-Key', `must be at most ${MAX_KEY} visible ASCII characters`)
  }
  return key
}

/**
 * Derives the refund's id, which is the request id on the wire: a database that lost the row derives it again, and the
 * gateway can refuse it as repeated.
 * @param idempotencyKey without its quotes
 * @returns a UUID of version 8 (RFC 9562), in lower case
 */
export function deriveRefundId(merchantCode: string, idempotencyKey: string): string {
  const bytes = createHash('sha256')
    .update(['ipn-processor/refund', merchantCode, idempotencyKey].join('\0'))
    .digest()
    .subarray(0, 16)
  bytes.writeUInt8((bytes.readUInt8(6) & 0x0f) | 0x80, 6)
  bytes.writeUInt8((bytes.readUInt8(8) & 0x3f) | 0x80, 8)
  const hex = bytes.toString('hex')
  return hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5')
}

/** For a fingerprint: amounts compare by value, and a surplus refund never equals the refund of a payment. */
export function formatParams(params: RefundParams): string {
  const { amount, receiver, reason, metadata = {}, onBehalfOf } = params
  const subject = 'paymentId' in params ? params.paymentId : ['surplus', params.transactionId]
  const value = amount === undefined ? null : shortenAmount(amount)
  const to = receiver && [receiver.accountName, receiver.accountNumber, receiver.swiftCode]
  const pairs = Object.entries(metadata).sort(([a], [b]) => (a < b ? -1 : 1))
  const person = onBehalfOf === undefined ? [] : [onBehalfOf]
  return JSON.stringify([subject, value, to ?? null, reason ?? null, pairs, ...person])
}

export type RefundTarget = {
  merchantCode: string
  transactionId: string
  /** The refund stored under the idempotency key, with the fingerprint of its request; null for a new key. */
  replay: (Fingerprint & { refundId: string }) | null
}

type TargetRow = Omit<RefundTarget, 'replay'> & {
  refundId: string | null
  value: Buffer
  keyId: string
}

/**
 * Finds what to refund and the refund of the idempotency key, before any other check: a replay gets the same answer
 * whatever has changed since.
 * @throws DomainError `payment_not_found`, `transaction_not_found`, `ambiguous_merchant`
 */
export async function findTarget(
  sql: Tx,
  merchants: readonly string[],
  subject: RefundSubject,
  idempotencyKey: string,
): Promise<RefundTarget> {
  const [kind, column, id] =
    'paymentId' in subject
      ? (['payment', 'payment_id', subject.paymentId] as const)
      : (['transaction', 'transaction_id', subject.transactionId] as const)
  const rows = await sql<TargetRow[]>`
    select s.merchant_code as "merchantCode", s.transaction_id as "transactionId",
      r.refund_id as "refundId", r.fingerprint as value, r.fingerprint_key_id as "keyId"
    from (
      select merchant_code, ${id}::text as ${sql(column)}, ${idempotencyKey}::text as idempotency_key
      from json_array_elements_text(${JSON.stringify(merchants)}::json) as merchant_code
    ) as k cross join lateral (
      select merchant_code, transaction_id from ${sql(`${kind}s`)} as s
      where ${sql.unsafe(byKey('s', ['merchant_code', column], 'k'))} limit 1
    ) as s left join lateral (
      select * from refunds as r
      where ${sql.unsafe(byKey('r', ['merchant_code', 'idempotency_key'], 'k'))} limit 1) as r on true`
  const { merchantCode, transactionId, refundId, value, keyId } = requireOnly(rows, kind, id)
  const replay = refundId === null ? null : { refundId, value, keyId }
  return { merchantCode, transactionId, replay }
}

/** `stored` is the new refund. A replayed refund still has to be read. */
export type RequestedRefund = { refundId: string; merchantCode: string } & (
  | { replayed: true }
  | { replayed: false; stored: ShownRefund }
)

/** @throws DomainError `idempotency_key_reused`, or `unavailable` when the requests cannot be compared */
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
    `This Idempotency-Key belongs to refund ${refundId}, which was requested with another payment, amount, receiver, reason, metadata or person (onBehalfOf); read that refund with GET /v1/refunds/${refundId} before anything else is refunded`,
    { extra: { refundId } },
  )
}

/** An operator has to configure the missing data key first (s). */
const RETRY_AFTER_S = 60

/** Whether a request was refused, which a copy of it may have caused that was stored meanwhile. */
export function isRefusal(error: unknown): boolean {
  const isTaken = ['refunds_pkey', 'refunds_idempotency_key'].some((name) =>
    violatesConstraint(error, name),
  )
  return isTaken || error instanceof DomainError || error instanceof StaleVersionError
}

/**
 * An API key may read what it requested itself, also through its rotations or another key of the same person; what
 * others requested takes `refunds:read`, as everywhere.
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
