import { lockActor } from '../access/principal.ts'
import type { Context } from '../context.ts'
import { SYNC_DUE } from '../db/names.ts'
import { DomainError } from '../errors.ts'
import { compareAmounts, exceedsDecimals, findLeastAmount } from '../money.ts'
import { notifyAfterCommit } from '../platform/postgres/notify.ts'
import { pipeline } from '../platform/postgres/transaction.ts'
import type { Tx } from '../platform/postgres/types.ts'
import { notifyTransactionChanged } from '../transactions/due.ts'
import { type Caps, lockCaps } from './caps.ts'
import { recordTaken } from './first-status.ts'
import { type IntentToStore, insertIntent, lockPayment } from './insert.ts'
import { encryptReceiver, maskReceiver, refuseReceiver } from './receiver.ts'
import type { StoredIntent } from './request-schema.ts'
import { explainRefusal, findInferred } from './target.ts'

/** What a request asks for. Amounts are decimal strings, without one for all that is left. */
export type AskedAmount = {
  amount: string | undefined
  currency: string | null
  /** All that is left, or all of a surplus: may be refunded however small it is. */
  whole: readonly string[]
}

/**
 * Refuses an amount that its currency does not have: with too many decimals, or less than the smallest unit. Otherwise a
 * payment could be refunded in a million parts, each of them a call of the gateway.
 * @throws DomainError `invalid_request` on `amount`
 */
export function refuseAmount({ amount, currency, whole }: AskedAmount): void {
  if (amount === undefined) return
  if (currency !== null && exceedsDecimals(amount, currency)) {
    throw refuse(`has more decimals than ${currency} has`)
  }
  const least = findLeastAmount(currency)
  if (compareAmounts(amount, least) >= 0) return
  if (whole.some((all) => compareAmounts(amount, all) === 0)) return
  throw refuse(`must be at least ${least}, or all that is left`)
}

function refuse(message: string): DomainError {
  return new DomainError('invalid_request', `amount: ${message}`, {
    errors: [{ path: 'amount', message }],
  })
}

/**
 * Stores the intent of a refund, with its history and audit entries, and makes its transaction due.
 * Locks in order (the key's day, transaction, payment), and sends the locks of the last two together with the insert.
 * @throws DomainError when the refund is refused, KeyTakenError when a concurrent request used the key;
 *   the caller rolls back
 */
export async function storeIntent(
  ctx: Pick<Context, 'config' | 'encryption' | 'sql'>,
  tx: Tx,
  toStore: IntentToStore,
): Promise<StoredIntent> {
  refuseUnsendable(ctx, toStore.target.merchantCode)
  refuseReceiver(ctx.config, toStore.params.receiver)
  const caps = await lockCaps(tx, toStore.access, ctx.config)
  return await storeWithCaps(ctx, tx, toStore, caps)
}

/** The part of `storeIntent` that follows the lock of the key's day. */
export async function storeWithCaps(
  ctx: Pick<Context, 'config' | 'encryption' | 'sql'>,
  tx: Tx,
  toStore: IntentToStore,
  caps: Caps,
): Promise<StoredIntent> {
  const { access, target, params, intent, surplus = '0' } = toStore
  const { receiver, paymentId } = params
  const { refundId } = intent
  const encrypted = receiver
    ? encryptReceiver(ctx.encryption, receiver, 'receiver', refundId)
    : null
  const masked = receiver && maskReceiver(receiver)
  const shown = masked ? encryptReceiver(ctx.encryption, masked, 'receiver_shown', refundId) : null
  const [, [found]] = await pipeline(
    lockPayment(tx, target),
    insertIntent(ctx, tx, toStore, { encrypted, shown, caps }),
  )
  await lockActor(tx, access)
  if (!found) {
    const detail = `Payment ${paymentId} has changed in this moment; repeat the request with the same key`
    throw new DomainError('unavailable', detail)
  }
  const { amount, refundable, order, now, status } = found
  const { currency } = order
  // What the gateway is known to have refunded is stored whatever its amount is.
  if (!found.isKnown)
    refuseAmount({ amount: params.amount, currency, whole: [refundable, surplus] })
  if (amount === null || status === null) {
    const inferred = await findInferred(tx, target.merchantCode, [target.paymentId])
    throw explainRefusal({ ...found, status: found.paymentStatus }, params, inferred)
  }
  notifyAfterCommit(tx, SYNC_DUE)
  notifyTransactionChanged(tx, target)
  // What was sent before its row was lost was counted then, and is not sent again.
  if (status === 'pending' || status === 'awaiting_approval') {
    await caps.consume(amount, found.verifiedCurrency)
  }
  const refund = {
    ...NEW_REFUND,
    status,
    merchantCode: target.merchantCode,
    refundId,
    paymentId: target.paymentId,
    transactionId: target.transactionId,
    amount,
    reason: params.reason ?? null,
    metadata: params.metadata ?? {},
    receiverShown: shown,
    requestedBy: access.name,
    onBehalfOf: params.onBehalfOf ?? null,
    needsApproval: status === 'awaiting_approval',
    requestedAt: now,
    updatedAt: now,
  }
  const more = await recordTaken(tx, target, refundId, found.taken)
  return { amount, refundable, currency, stored: { refund, order }, more }
}

const NEW_REFUND = {
  inferred: false,
  gatewayRefundId: null,
  fee: null,
  notifiedReference: null,
  failureSource: null,
  failureReason: null,
  failureMessage: null,
  hold: null,
  resolution: null,
  decidedBy: null,
  decidedReason: null,
  approvedAt: null,
  declinedAt: null,
  selfDecided: false,
}

/** Refuses refunds that could not be sent now: stored, they would be sent unexpectedly later. */
export function refuseUnsendable({ config }: Pick<Context, 'config'>, merchantCode: string): void {
  if (!config.REFUNDS_ENABLED) {
    const detail = 'New refunds are disabled at the moment; refunds in progress continue'
    throw new DomainError('refunds_disabled', detail)
  }
  if (!config.accounts.some((account) => account.merchantCode === merchantCode)) {
    const detail = `Merchant account ${merchantCode} is no longer configured, so the gateway cannot be called`
    throw new DomainError('merchant_not_found', detail)
  }
}
