import { randomUUID } from 'node:crypto'
import type { Access } from '../access/authenticate.ts'
import type { Context } from '../context.ts'
import type { Tx } from '../db/client.ts'
import { makeDue, SYNC_DUE, TRANSACTION_CHANGED } from '../db/due.ts'
import { DomainError } from '../errors.ts'
import { compareAmounts, subtractAmount } from '../money.ts'
import { REFUNDABLE_SQL } from '../payments/refundable.ts'
import { chargeCaps } from './caps.ts'
import { fingerprintWish, type RefundWish } from './idempotency.ts'
import { maskReceiver, type Receiver, sealReceiver } from './receiver.ts'

/** The payment a refund is asked of, and its account. */
export type RefundTarget = { merchantCode: string; transactionId: string; paymentId: string }

export type RequestedRefund = { refundId: string; replayed: boolean }

/**
 * Takes a refund in: one transaction checks and stores the intent, whose id is the wire's request id
 * from now on. The same idempotency key with the same wish gives the refund it gave the first time.
 * @throws DomainError, the refusals of a refund; nothing is stored then
 */
export async function requestRefund(
  ctx: Context,
  access: Access,
  target: RefundTarget,
  idempotencyKey: string,
  wish: RefundWish,
): Promise<RequestedRefund> {
  const fingerprint = fingerprintWish(ctx.sealer, wish)
  const replay = () => findReplay(ctx, target.merchantCode, idempotencyKey, fingerprint)
  const known = await replay()
  if (known) return known
  refuseUnsendable(ctx, target)
  const refundId = randomUUID()
  const stored = await ctx.sql
    .begin(async (tx) => {
      const { amount } = await checkWish(tx, access, target, wish)
      const inserted = await tx`
      insert into refunds (merchant_code, refund_id, transaction_id, payment_id, amount, reason, receiver,
        receiver_shown, idempotency_key, fingerprint, requested_by, status, due_at)
      values (${target.merchantCode}, ${refundId}, ${target.transactionId}, ${target.paymentId}, ${amount},
        ${wish.reason ?? null}, ${wish.receiver ? sealReceiver(ctx.sealer, wish.receiver, refundId) : null},
        ${wish.receiver ? sealReceiver(ctx.sealer, maskReceiver(wish.receiver), refundId) : null},
        ${idempotencyKey}, ${fingerprint}, ${access.name}, 'pending', now())
      on conflict (merchant_code, idempotency_key) do nothing`
      // Somebody stored the same key while we waited for the lock: nothing of ours may stay.
      if (inserted.count === 0) throw new KeyTakenError()
      await announceRefund(ctx, tx, target, refundId, access.name)
      return { refundId, replayed: false }
    })
    .catch(async (error: unknown) => {
      // A copy of this request may have been stored while we waited for its locks: then it is what left
      // too little for us, and its refund is the answer.
      const refused = error instanceof KeyTakenError || error instanceof DomainError
      const taken = refused ? await replay() : undefined
      if (taken) return taken
      throw error
    })
  return stored
}

class KeyTakenError extends Error {}

/** What a refund would do, with every refusal it would meet; nothing is stored. */
export async function previewRefund(
  ctx: Context,
  access: Access,
  target: RefundTarget,
  wish: RefundWish,
): Promise<{
  amount: string
  refundableAmount: string
  refundableAfter: string
  currency: string | null
}> {
  refuseUnsendable(ctx, target)
  const rollBack = new Error('a preview leaves nothing behind')
  let preview: { amount: string; refundable: string; currency: string | null } | undefined
  await ctx.sql
    .begin(async (tx) => {
      preview = await checkWish(tx, access, target, wish)
      throw rollBack
    })
    .catch((error: unknown) => {
      if (error !== rollBack) throw error
    })
  if (!preview) throw new Error('the preview came to nothing')
  const { amount, refundable, currency } = preview
  return {
    amount,
    currency,
    refundableAmount: refundable,
    refundableAfter: subtractAmount(refundable, amount),
  }
}

/** What this installation would not send now: taken in, it would leave some day, unexpected. */
function refuseUnsendable(ctx: Context, { merchantCode }: RefundTarget): void {
  if (!ctx.config.REFUNDS_ENABLED) {
    throw new DomainError(
      'refunds_disabled',
      'New refunds are switched off for the moment; those under way go on',
    )
  }
  if (!ctx.config.accounts.some((account) => account.merchantCode === merchantCode)) {
    throw new DomainError(
      'merchant_not_found',
      `The account ${merchantCode} is not in the settings any more: the gateway cannot be asked`,
    )
  }
}

async function findReplay(
  ctx: Context,
  merchantCode: string,
  idempotencyKey: string,
  fingerprint: Buffer,
): Promise<RequestedRefund | undefined> {
  const [known] = await ctx.sql<{ refundId: string; same: boolean }[]>`
    select refund_id as "refundId", fingerprint = ${fingerprint} as same from refunds
    where merchant_code = ${merchantCode} and idempotency_key = ${idempotencyKey}`
  if (!known) return undefined
  if (known.same) return { refundId: known.refundId, replayed: true }
  throw new DomainError(
    'idempotency_key_reused',
    'This Idempotency-Key was sent with another payment, amount, receiver or reason; use a new one for a new refund',
  )
}

/** Locks in order (the key's day, transaction, payment), then counts: a sum taken before the wait would be old. */
async function checkWish(
  tx: Tx,
  access: Access,
  { merchantCode, transactionId, paymentId }: RefundTarget,
  wish: RefundWish,
): Promise<{ amount: string; refundable: string; currency: string | null }> {
  const caps = await chargeCaps(tx, access)
  const [payment] = await tx<
    { status: string; missing: boolean; paymentMethod: string; currency: string | null }[]
  >`
    select p.status, p.missing, p.payment_method as "paymentMethod", t.currency
    from transactions t join payments p using (merchant_code, transaction_id)
    where t.merchant_code = ${merchantCode} and t.transaction_id = ${transactionId}
      and p.payment_id = ${paymentId}
    for update of t, p`
  if (!payment) throw new DomainError('payment_not_found', `No payment ${paymentId}`)
  if (payment.status !== 'SUCCESS' || payment.missing) {
    const why = payment.missing
      ? 'the gateway does not list it any more'
      : `it is ${payment.status}`
    throw new DomainError(
      'payment_not_refundable',
      `Payment ${paymentId} cannot be refunded: ${why}`,
    )
  }
  requireReceiver(payment.paymentMethod, wish.receiver)
  const [balance] = await tx<{ refundable: string }[]>`
    select ${tx.unsafe(REFUNDABLE_SQL)}::text as refundable from payments
    where merchant_code = ${merchantCode} and payment_id = ${paymentId}`
  const refundable = balance?.refundable ?? '0'
  const amount = wish.amount ?? refundable
  if (compareAmounts(amount, refundable) > 0 || compareAmounts(refundable, '0') === 0) {
    throw new DomainError('exceeds_refundable', `Only ${refundable} is left to refund`, {
      extra: { refundableAmount: refundable },
    })
  }
  await caps.charge(amount)
  return { amount, refundable, currency: payment.currency }
}

function requireReceiver(paymentMethod: string, receiver: Receiver | undefined): void {
  if (paymentMethod !== 'QR' || receiver) return
  const message = 'is needed, because the payment was made by QR'
  throw new DomainError('receiver_required', `receiver: ${message}`, {
    errors: [{ path: 'receiver', message }],
  })
}

/** Records who asked, shows the reservation to readers, and wakes the pass that sends. */
async function announceRefund(
  ctx: Context,
  tx: Tx,
  { merchantCode, transactionId, paymentId }: RefundTarget,
  refundId: string,
  keyName: string,
): Promise<void> {
  await tx`
    with recorded as (
      insert into changes (merchant_code, transaction_id, payment_id, refund_id, field, after, cause)
      values (${merchantCode}, ${transactionId}, ${paymentId}, ${refundId}, 'status', 'pending',
        ${`requested with the key ${keyName}`})
    ), due as (
      update transactions t set final = false, version = version + 1, updated_at = now(), ${makeDue(ctx.sql)}
      where merchant_code = ${merchantCode} and transaction_id = ${transactionId}
    )
    select pg_notify(${SYNC_DUE}, ''),
      pg_notify(${TRANSACTION_CHANGED}, ${JSON.stringify([merchantCode, transactionId])})`
}
