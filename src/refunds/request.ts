import { createHash, randomUUID } from 'node:crypto'
import type { Access } from '../access/types.ts'
import type { Context } from '../context.ts'
import { formatTransactionKey } from '../db/transaction-key.ts'
import { DomainError } from '../errors.ts'
import { prepareRecording } from '../events/record-events.ts'
import { subtractAmount } from '../money.ts'
import { violatesConstraint } from '../platform/postgres/errors.ts'
import { confirmCommits, runInTransaction, runPipelined } from '../platform/postgres/transaction.ts'
import type { Tx } from '../platform/postgres/types.ts'
import { countsToday, lockDay } from './caps.ts'
import { buildRefundEvent } from './events.ts'
import { type FoundRefund, findRefund, isRequestedBy } from './find.ts'
import { findTarget, lockAndReadFacts, type RefundTarget } from './request-facts.ts'
import {
  type AcceptedRefund,
  type AskedRefund,
  judgeRequest,
  requireSendable,
  StaleVersionError,
} from './request-rules.ts'
import { formatParams, type RefundParams, type RequestedRefund } from './request-schema.ts'
import { storeRefund } from './store-refund.ts'
import { choosePayment } from './surplus.ts'

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

/**
 * Accepts a refund, in one transaction that locks, reads, judges and stores it. The same idempotency key with the same
 * parameters returns the refund that it created the first time.
 * @throws DomainError when the refund is refused, StaleVersionError when something has changed since the caller read
 *   it; nothing is stored then
 */
export async function requestRefund(
  ctx: Context,
  access: Access,
  merchants: readonly string[],
  idempotencyKey: string,
  params: RefundParams,
): Promise<RequestedRefund> {
  const find = (sql: Tx) => findTarget(sql, merchants, params, idempotencyKey)
  const asked = formatParams(params)
  let isNew = false
  try {
    return await runPipelined<RefundTarget, RequestedRefund>(ctx.db.sql, {
      open: find,
      work: async (tx, target) => {
        const replayed = replayRefund(ctx, target, asked)
        if (replayed) return { value: replayed, last: () => confirmCommits(tx) }
        isNew = true
        const { merchantCode } = target
        const refundId = deriveRefundId(merchantCode, idempotencyKey)
        ctx.tracing.remember(formatTransactionKey(target))
        const judged = await lockAndJudge(ctx, tx, access, target, params, refundId)
        const fingerprint = ctx.encryption.fingerprint(asked)
        const identity = { idempotencyKey, fingerprint }
        const { stored, more } = await storeRefund(ctx, tx, judged, identity)
        const event = buildRefundEvent(ctx.encryption, target, 'refund.created', stored)
        const value = { refundId, merchantCode, replayed: false as const, stored }
        return { value, last: prepareRecording(tx, [event, ...more]) }
      },
    })
  } catch (error) {
    // A copy of this request may have been stored while this one waited for the locks. It may be the reason for the
    // refusal, because it left too little to refund or changed the version. Its refund is the answer then.
    if (!isNew || !isRefusal(error)) throw error
    const replayed = replayRefund(ctx, await find(ctx.db.sql), asked)
    if (!replayed) throw error
    await confirmCommits(ctx.db.sql)
    return replayed
  }
}

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

function isRefusal(error: unknown): boolean {
  const isTaken = ['refunds_pkey', 'refunds_idempotency_key'].some((name) =>
    violatesConstraint(error, name),
  )
  return isTaken || error instanceof DomainError || error instanceof StaleVersionError
}

/** Locks the API key's day, the order, the transaction and the payment, in this order, and judges the request. */
async function lockAndJudge(
  { config }: Pick<Context, 'config'>,
  tx: Tx,
  access: Access,
  target: RefundTarget,
  params: RefundParams,
  refundId: string,
): Promise<AcceptedRefund> {
  requireSendable(config, target.merchantCode, params)
  const zone = config.CAPS_TIME_ZONE
  const asked = await chooseAsked(tx, access, target, params, { refundId, zone })
  const { merchantCode, transactionId } = target
  const key = { merchantCode, transactionId, paymentId: asked.paymentId }
  const facts = await lockAndReadFacts(tx, access, key, { refundId, zone })
  if (!facts) {
    const detail = `Payment ${asked.paymentId} has changed in this moment; repeat the request with the same key`
    throw new DomainError('unavailable', detail)
  }
  return { ...asked, key, facts, judged: judgeRequest(facts, asked, config) }
}

/** Chooses a surplus refund's payment under the locks of its order, whose version is compared there. */
async function chooseAsked(
  tx: Tx,
  access: Access,
  target: RefundTarget,
  params: RefundParams,
  { refundId, zone }: { refundId: string; zone: string },
): Promise<AskedRefund> {
  if ('paymentId' in params) return { access, refundId, paymentId: params.paymentId, params }
  if (countsToday(access)) await lockDay(tx, access, zone)
  const { paymentId, amount, surplus } = await choosePayment(tx, target, params, refundId)
  const chosen = { paymentId, surplus, params: { ...params, amount, expectedVersion: undefined } }
  return { access, refundId, ...chosen }
}

export type PreviewedRefund = Awaited<ReturnType<typeof previewRefund>>

/** Judges a refund as a request would, with the same refusals, and stores nothing. Amounts are decimal strings. */
export async function previewRefund(
  ctx: Pick<Context, 'config' | 'db'>,
  access: Access,
  merchants: readonly string[],
  params: RefundParams,
) {
  const refundId = randomUUID()
  const target = await findTarget(ctx.db.sql, merchants, params, refundId)
  return await runAndRollBack(ctx, async (tx) => {
    const asked = await lockAndJudge(ctx, tx, access, target, params, refundId)
    const { amount, status } = asked.judged
    const { refundable } = asked.facts.payment
    return {
      ...{ paymentId: asked.paymentId, surplus: asked.surplus, amount, refundable },
      currency: asked.facts.order.currency,
      refundableAfter: subtractAmount(refundable, amount),
      needsApproval: status === 'awaiting_approval',
    }
  })
}

async function runAndRollBack<T extends object>(
  { db: { sql } }: Pick<Context, 'db'>,
  work: (tx: Tx) => Promise<T>,
): Promise<T> {
  const rollBack = new Error('the preview is rolled back')
  let result: T | undefined
  await runInTransaction(sql, async (tx) => {
    result = await work(tx)
    throw rollBack
  }).catch((error: unknown) => {
    if (error !== rollBack) throw error
  })
  if (!result) throw new Error('the preview has no result')
  return result
}
