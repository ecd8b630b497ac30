import { createHash, randomUUID } from 'node:crypto'
import type { Access } from '../access/types.ts'
import type { Context } from '../context.ts'
import { formatTransactionKey } from '../db/transaction-key.ts'
import { DomainError } from '../errors.ts'
import { prepareRecording } from '../events/record-events.ts'
import { subtractAmount } from '../money.ts'
import { confirmCommits, runInTransaction, runPipelined } from '../platform/postgres/transaction.ts'
import type { Tx } from '../platform/postgres/types.ts'
import { buildRefundEvent } from './events.ts'
import {
  formatParams,
  type RefundAmounts,
  type RefundIntent,
  type RefundParams,
  type RequestedRefund,
  type StoredIntent,
} from './request-schema.ts'
import { storeIntent } from './store.ts'
import {
  findTarget,
  KeyTakenError,
  type RefundTarget,
  replayRefund,
  StaleVersionError,
} from './target.ts'

/**
 * Derives the id of a refund, which is the request id on the wire, from the request: the same merchant and key
 * give the same id also from a database that lost the refund's row, so that the gateway can refuse it as repeated.
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
 * Accepts a refund: one transaction checks and stores the intent, whose id is the wire's request id from then
 * on. The same idempotency key with the same parameters returns the refund it created the first time.
 * @param merchants the accounts the caller may use
 * @throws DomainError when the refund is refused, StaleVersionError when it is not as the caller expects; nothing is
 *   stored then
 */
export async function requestRefund(
  ctx: Context,
  access: Access,
  merchants: readonly string[],
  idempotencyKey: string,
  params: RefundParams,
): Promise<RequestedRefund> {
  return await acceptRefund<RefundTarget>(ctx, idempotencyKey, {
    asked: formatParams(params),
    find: (sql) => findTarget({ sql }, merchants, params.paymentId, idempotencyKey),
    store: (tx, target, intent) => storeIntent(ctx, tx, { access, target, params, intent }),
  })
}

/** What is particular to a kind of refund request. */
export type AcceptedRequest<T> = {
  /** The parameters, for the fingerprint. */
  asked: string
  /** Finds what is to be refunded, and the refund of the idempotency key. */
  find: (sql: Tx) => Promise<T>
  /** Locks, checks and stores the intent. */
  store: (tx: Tx, target: T, intent: RefundIntent) => Promise<Pick<StoredIntent, 'stored' | 'more'>>
}

/**
 * Stores a refund under an idempotency key, or returns the one that is stored under it.
 * @throws DomainError when the refund is refused; nothing is stored then
 */
export async function acceptRefund<T extends Omit<RefundTarget, 'paymentId'>>(
  ctx: Context,
  idempotencyKey: string,
  { asked, find, store }: AcceptedRequest<T>,
): Promise<RequestedRefund> {
  let isNew = false
  try {
    return await runPipelined<T, RequestedRefund>(ctx.sql, {
      open: find,
      work: async (tx, target) => {
        const replayed = replayRefund(ctx, target, asked)
        if (replayed) return { value: replayed, last: () => confirmCommits(tx) }
        isNew = true
        const { merchantCode } = target
        const refundId = deriveRefundId(merchantCode, idempotencyKey)
        const intent = { refundId, idempotencyKey, fingerprint: ctx.encryption.fingerprint(asked) }
        ctx.tracing.remember(formatTransactionKey(target))
        const { stored, more } = await store(tx, target, intent)
        const event = buildRefundEvent(ctx.encryption, target, 'refund.created', stored)
        const value = { refundId, merchantCode, replayed: false as const, stored }
        return { value, last: prepareRecording(tx, [event, ...more]) }
      },
    })
  } catch (error) {
    // A copy of this request may have been stored during the wait for the locks. It may also be the reason for
    // the refusal, if it left too little to refund or changed the version; its refund is the answer then.
    if (!isNew || !isRefusal(error)) throw error
    const replayed = replayRefund(ctx, await find(ctx.sql), asked)
    if (!replayed) throw error
    await confirmCommits(ctx.sql)
    return replayed
  }
}

function isRefusal(error: unknown): boolean {
  return [KeyTakenError, StaleVersionError, DomainError].some((kind) => error instanceof kind)
}

/** What a refund would do; amounts are decimal strings. */
export type PreviewedRefund = RefundAmounts & {
  refundableAfter: string
  /** Nothing would be sent before a second person approves. */
  needsApproval: boolean
}

/**
 * Computes what a refund would do by storing its intent and rolling back.
 * @param merchants the accounts the caller may use
 * @throws DomainError the refusal the refund would get
 */
export async function previewRefund(
  ctx: Pick<Context, 'config' | 'encryption' | 'sql'>,
  access: Access,
  merchants: readonly string[],
  params: RefundParams,
): Promise<PreviewedRefund> {
  const intent = draftIntent()
  const target = await findTarget(ctx, merchants, params.paymentId, intent.refundId)
  return summarise(
    await runAndRollBack(ctx, (tx) => storeIntent(ctx, tx, { access, target, params, intent })),
  )
}

/** Summarises an intent that was stored and rolled back. */
export function summarise<T extends StoredIntent>(stored: T): T & PreviewedRefund {
  const { refundable, amount } = stored
  return {
    ...stored,
    refundableAfter: subtractAmount(refundable, amount),
    needsApproval: stored.stored.refund.needsApproval,
  }
}

/** An intent that is never kept. */
export function draftIntent(): RefundIntent {
  const refundId = randomUUID()
  const fingerprint = { value: Buffer.alloc(0), keyId: '' }
  return { refundId, idempotencyKey: refundId, fingerprint }
}

/** Runs work in a transaction that is rolled back, and returns its result. */
export async function runAndRollBack<T extends object>(
  { sql }: Pick<Context, 'sql'>,
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
