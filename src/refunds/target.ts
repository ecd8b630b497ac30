import type { Access } from '../access/types.ts'
import type { Context } from '../context.ts'
import { DomainError } from '../errors.ts'
import type { Fingerprint } from '../platform/crypto/encryption.ts'
import { byKey } from '../platform/postgres/by-key.ts'
import type { Tx } from '../platform/postgres/types.ts'
import { type FoundRefund, findRefund, isRequestedBy } from './find.ts'
import type { RefundSubject, RequestedRefund } from './request-schema.ts'

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

/** What a refund was asked for: a payment, or a transaction of whose order more than one success was paid. */
export type RefundTarget = {
  merchantCode: string
  transactionId: string
  /** The refund that was stored under the idempotency key, with the fingerprint of its request; null for none. */
  replay: (Fingerprint & { refundId: string }) | null
}

const TARGETS = {
  payment: { table: 'payments', column: 'payment_id', unknown: 'payment_not_found' },
  transaction: {
    table: 'transactions',
    column: 'transaction_id',
    unknown: 'transaction_not_found',
  },
} as const

type TargetRow = Omit<RefundTarget, 'replay'> & {
  refundId: string | null
  value: Buffer
  keyId: string
}

/**
 * Finds what is to be refunded and the refund of the idempotency key. Runs before anything else is checked, so that a
 * replay gets the same answer whatever has changed since.
 * @param merchants the accounts the caller may use
 * @throws DomainError `payment_not_found`, `transaction_not_found`, `ambiguous_merchant`
 */
export async function findTarget(
  sql: Tx,
  merchants: readonly string[],
  subject: RefundSubject,
  idempotencyKey: string,
): Promise<RefundTarget> {
  const [kind, id] =
    'paymentId' in subject
      ? (['payment', subject.paymentId] as const)
      : (['transaction', subject.transactionId] as const)
  const { table, column, unknown } = TARGETS[kind]
  const [row, second] = await sql<TargetRow[]>`
    select s.merchant_code as "merchantCode", s.transaction_id as "transactionId",
      r.refund_id as "refundId", r.fingerprint as value, r.fingerprint_key_id as "keyId"
    from (
      select merchant_code, ${id}::text as ${sql(column)}, ${idempotencyKey}::text as idempotency_key
      from json_array_elements_text(${JSON.stringify(merchants)}::json) as merchant_code
    ) as k cross join lateral (
      select merchant_code, transaction_id from ${sql(table)} as s
      where ${sql.unsafe(byKey('s', ['merchant_code', column], 'k'))} limit 1
    ) as s left join lateral (
      select * from refunds as r
      where ${sql.unsafe(byKey('r', ['merchant_code', 'idempotency_key'], 'k'))} limit 1) as r on true`
  if (!row) throw new DomainError(unknown, `No ${kind} ${id}`)
  if (second) {
    const detail = `Several merchant accounts have a ${kind} ${id}; select one with ?merchantCode=`
    throw new DomainError('ambiguous_merchant', detail)
  }
  const { merchantCode, transactionId, refundId, value, keyId } = row
  const replay = refundId === null ? null : { refundId, value, keyId }
  return { merchantCode, transactionId, replay }
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
