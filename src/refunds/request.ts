import { randomUUID } from 'node:crypto'
import type { Access } from '../access/types.ts'
import type { Context } from '../context.ts'
import { formatTransactionKey } from '../db/transaction-key.ts'
import { DomainError } from '../errors.ts'
import { subtractAmount } from '../money.ts'
import {
  confirmCommits,
  pipeline,
  runInTransaction,
  runPipelined,
} from '../platform/postgres/transaction.ts'
import type { Tx } from '../platform/postgres/types.ts'
import { countsToday } from './caps.ts'
import {
  deriveRefundId,
  findTarget,
  formatParams,
  isRefusal,
  type RefundTarget,
  type RequestedRefund,
  replayRefund,
} from './idempotency.ts'
import { lockAndReadFacts, type RequestFacts } from './request-facts.ts'
import { type AcceptedRefund, judgeRequest, requireSendable } from './request-rules.ts'
import type { RefundParams } from './request-schema.ts'
import { prepareRefund } from './store-refund.ts'
import { chooseAsked } from './surplus.ts'

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
    return await runPipelined<Opened, RequestedRefund>(ctx.db.sql, {
      open: (tx) =>
        pipeline(find(tx), lockAtOnce(ctx, tx, access, merchants, idempotencyKey, params)),
      work: async (tx, [target, early]) => {
        const replayed = replayRefund(ctx, target, asked)
        if (replayed) return { value: replayed, last: () => confirmCommits(tx) }
        isNew = true
        const { merchantCode } = target
        const refundId = deriveRefundId(merchantCode, idempotencyKey)
        ctx.tracing.remember(formatTransactionKey(target))
        const judged = await lockAndJudge(ctx, tx, access, target, params, refundId, early)
        const fingerprint = ctx.encryption.fingerprint(asked)
        const identity = { idempotencyKey, fingerprint }
        const { stored, last } = await prepareRefund(ctx, tx, judged, identity)
        return { value: { refundId, merchantCode, replayed: false, stored }, last }
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

/** `false` if they are locked and read later. */
type Facts = RequestFacts | undefined | false

type Opened = [target: RefundTarget, early: Facts]

/**
 * Locks and reads the payment in the round trip that looks for the idempotency key, if its account is known before. A
 * repeated request waits for neither transaction nor payment then, but for a change of its key under way, and is refused
 * if that revokes it. It would also wait for the day of a key with a daily cap, which is therefore locked later.
 */
async function lockAtOnce(
  ctx: Pick<Context, 'config'>,
  tx: Tx,
  access: Access,
  [merchantCode, ...others]: readonly string[],
  idempotencyKey: string,
  params: RefundParams,
): Promise<Facts> {
  if (merchantCode === undefined || others.length > 0 || countsToday(access)) return false
  if (!('paymentId' in params)) return false
  const refundId = deriveRefundId(merchantCode, idempotencyKey)
  const key = { merchantCode, paymentId: params.paymentId, refundId }
  return await lockAndReadFacts(ctx, tx, access, key, params)
}

/**
 * Locks the API key's day, the order, the transaction and the payment, in this order, and judges the request.
 * @param early what was read under the payment's locks, which are never taken twice: a payment that has just moved may
 *   be locked already, and its new transaction would be locked after it
 */
async function lockAndJudge(
  ctx: Pick<Context, 'config'>,
  tx: Tx,
  access: Access,
  target: RefundTarget,
  params: RefundParams,
  refundId: string,
  early: Facts,
): Promise<AcceptedRefund> {
  requireSendable(ctx.config, target.merchantCode, params)
  const zone = ctx.config.CAPS_TIME_ZONE
  const asked = await chooseAsked(tx, access, target, params, { refundId, zone })
  const { merchantCode, transactionId } = target
  const { paymentId } = asked
  const payment = { merchantCode, paymentId, refundId }
  const facts = early === false ? await lockAndReadFacts(ctx, tx, access, payment, params) : early
  if (facts?.transactionId !== transactionId) {
    const detail = `Payment ${paymentId} has changed in this moment; repeat the request with the same key`
    throw new DomainError('unavailable', detail)
  }
  const key = { merchantCode, transactionId, paymentId }
  return { ...asked, key, facts, judged: judgeRequest(facts, asked, ctx.config) }
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
    const asked = await lockAndJudge(ctx, tx, access, target, params, refundId, false)
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
