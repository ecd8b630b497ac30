import { randomUUID } from 'node:crypto'
import type { Access } from '../access/authenticate.ts'
import type { Context } from '../context.ts'
import type { Tx } from '../db/client.ts'
import { makeDue, SYNC_DUE, TRANSACTION_CHANGED } from '../db/due.ts'
import { runInTransaction } from '../db/transaction.ts'
import { DomainError } from '../errors.ts'
import { recordEvents } from '../events/record.ts'
import { compareAmounts, subtractAmount } from '../money.ts'
import { REFUNDABLE_SQL } from '../payments/refundable.ts'
import { chargeCaps } from './caps.ts'
import { fingerprintWish, type RefundWish } from './idempotency.ts'
import { maskReceiver, type Receiver, sealReceiver } from './receiver.ts'
import { tellRefund } from './tell.ts'
import type { ShownRefund } from './view.ts'

/** `stored` is the refund as it was just stored; one that was stored before has to be read. */
export type RequestedRefund = { refundId: string; merchantCode: string } & (
  | { replayed: true }
  | { replayed: false; stored: ShownRefund }
)

const REQUESTING = 'POST /v1/payments/{paymentId}/refunds'

/** What a refund comes to; amounts are decimal strings. */
export type RefundFacts = { amount: string; refundable: string; currency: string | null }

/**
 * Takes a refund in: one transaction checks and stores the intent, whose id is the wire's request id
 * from now on. The same idempotency key with the same wish gives the refund it gave the first time.
 * @throws DomainError, the refusals of a refund; nothing is stored then
 */
export async function requestRefund(
  ctx: Context,
  access: Access,
  merchants: readonly string[],
  idempotencyKey: string,
  wish: RefundWish,
): Promise<RequestedRefund> {
  const fingerprint = fingerprintWish(ctx.sealer, wish)
  const target = await findTarget(ctx, merchants, wish.paymentId, { idempotencyKey, fingerprint })
  if (target.replay) return takeReplay(target, target.replay)
  const intent = { refundId: randomUUID(), idempotencyKey, fingerprint }
  ctx.tracing.remember(target.merchantCode, target.transactionId)
  try {
    const { stored } = await runInTransaction(ctx.sql, async (tx) => {
      const facts = await storeIntent(ctx, tx, access, target, wish, intent)
      const event = tellRefund(ctx.sealer, target, 'refund.created', facts.stored)
      await recordEvents(tx, [event])
      return facts
    })
    const { merchantCode } = target
    return { refundId: intent.refundId, merchantCode, replayed: false, stored }
  } catch (error) {
    // A copy of this request may have been stored while we waited for its locks: then it is what left
    // too little for us, and its refund is the answer.
    if (!(error instanceof KeyTakenError || error instanceof DomainError)) throw error
    const again = await findTarget(ctx, merchants, wish.paymentId, intent)
    if (again.replay) return takeReplay(again, again.replay)
    throw error
  }
}

/** What a refund would do, with every refusal it would meet; nothing is stored. */
export async function previewRefund(
  ctx: Context,
  access: Access,
  merchants: readonly string[],
  wish: RefundWish,
): Promise<RefundFacts & { refundableAfter: string }> {
  const refundId = randomUUID()
  const intent = { refundId, idempotencyKey: refundId, fingerprint: Buffer.alloc(0) }
  const target = await findTarget(ctx, merchants, wish.paymentId, intent)
  const rollBack = new Error('a preview leaves nothing behind')
  let facts: RefundFacts | undefined
  await runInTransaction(ctx.sql, async (tx) => {
    facts = await storeIntent(ctx, tx, access, target, wish, intent)
    throw rollBack
  }).catch((error: unknown) => {
    if (error !== rollBack) throw error
  })
  if (!facts) throw new Error('the preview came to nothing')
  return { ...facts, refundableAfter: subtractAmount(facts.refundable, facts.amount) }
}

/** Somebody stored the same key while we waited for the lock: nothing of ours may stay. */
class KeyTakenError extends Error {}

/** What this installation would not send now: taken in, it would leave some day, unexpected. */
function refuseUnsendable(ctx: Context, merchantCode: string): void {
  if (!ctx.config.REFUNDS_ENABLED) {
    const detail = 'New refunds are switched off for the moment; those under way go on'
    throw new DomainError('refunds_disabled', detail)
  }
  if (!ctx.config.accounts.some((account) => account.merchantCode === merchantCode)) {
    const detail = `The account ${merchantCode} is not in the settings any more: the gateway cannot be asked`
    throw new DomainError('merchant_not_found', detail)
  }
}

type Intent = { refundId: string; idempotencyKey: string; fingerprint: Buffer }

type Target = {
  merchantCode: string
  transactionId: string
  paymentId: string
  replay: { refundId: string; same: boolean } | null
}

/** The payment, and the refund that the key stands for already: looked up before anything is checked. */
async function findTarget(
  ctx: Context,
  merchants: readonly string[],
  paymentId: string,
  { idempotencyKey, fingerprint }: Omit<Intent, 'refundId'>,
): Promise<Target> {
  const [target, second] = await ctx.sql<Target[]>`
    select p.merchant_code as "merchantCode", p.transaction_id as "transactionId",
      p.payment_id as "paymentId", (
        select json_build_object('refundId', r.refund_id, 'same', r.fingerprint = ${fingerprint})
        from refunds r
        where r.merchant_code = p.merchant_code and r.idempotency_key = ${idempotencyKey}) as replay
    from payments p where p.merchant_code = any(${[...merchants]}) and p.payment_id = ${paymentId}`
  if (!target) throw new DomainError('payment_not_found', `No payment ${paymentId}`)
  if (!second) return target
  const detail = 'Several merchant accounts have a payment of this id: name one with ?merchantCode='
  throw new DomainError('ambiguous_merchant', detail)
}

function takeReplay(
  { merchantCode }: Target,
  { refundId, same }: { refundId: string; same: boolean },
): RequestedRefund {
  if (same) return { refundId, merchantCode, replayed: true }
  throw new DomainError(
    'idempotency_key_reused',
    'This Idempotency-Key was sent with another payment, amount, receiver or reason; use a new one for a new refund',
  )
}

type Stored = {
  status: string
  missing: boolean
  paymentMethod: string
  currency: string | null
  refundable: string
  /** Null when nothing was stored. */
  amount: string | null
  now: string
}

/**
 * Locks in order (the key's day, transaction, payment), then counts in a second statement: a sum taken
 * before the wait would be old. That statement stores the intent only if everything allows it, with the
 * trace of who asked; what it read says why it did not. Both are sent at once and run one after the other.
 */
async function storeIntent(
  ctx: Context,
  tx: Tx,
  access: Access,
  { merchantCode, transactionId, paymentId }: Target,
  { amount, receiver, reason }: RefundWish,
  { refundId, idempotencyKey, fingerprint }: Intent,
): Promise<RefundFacts & { stored: ShownRefund }> {
  refuseUnsendable(ctx, merchantCode)
  const caps = await chargeCaps(tx, access)
  const sealed = receiver ? sealReceiver(ctx.sealer, receiver, refundId) : null
  const shown = receiver ? sealReceiver(ctx.sealer, maskReceiver(receiver), refundId) : null
  const key = tx`merchant_code = ${merchantCode} and transaction_id = ${transactionId}`
  const [, rows] = await Promise.all([
    tx`
      select from transactions t join payments p using (merchant_code, transaction_id)
      where t.merchant_code = ${merchantCode} and t.transaction_id = ${transactionId}
        and p.payment_id = ${paymentId} for update of t, p`,
    tx<Stored[]>`
      with payment as (
        select status, missing, payment_method, ${tx.unsafe(REFUNDABLE_SQL)} as refundable
        from payments where merchant_code = ${merchantCode} and payment_id = ${paymentId}
      ), stored as (
        insert into refunds (merchant_code, refund_id, transaction_id, payment_id, amount, reason, receiver,
          receiver_shown, idempotency_key, fingerprint, requested_by, status, due_at)
        select ${merchantCode}, ${refundId}, ${transactionId}, ${paymentId},
          coalesce(${amount ?? null}::numeric, refundable), ${reason ?? null}, ${sealed}, ${shown},
          ${idempotencyKey}, ${fingerprint}, ${access.name}, 'pending', now()
        from payment
        where status = 'SUCCESS' and not missing and (payment_method <> 'QR' or ${receiver !== undefined})
          and refundable > 0 and coalesce(${amount ?? null}::numeric, refundable) <= refundable
        on conflict (merchant_code, idempotency_key) do nothing
        returning refund_id, amount
      ), recorded as (
        insert into changes (merchant_code, transaction_id, payment_id, refund_id, field, after, cause)
        select ${merchantCode}, ${transactionId}, ${paymentId}, refund_id, 'status', 'pending',
          ${`requested with the key ${access.name}`} from stored
      ), audited as (
        insert into audit_entries (key_id, actor, operation, merchant_code, object_id, request_id, outcome)
        select ${access.id}, ${access.name}, ${REQUESTING}, ${merchantCode}, refund_id, ${access.requestId}, 'done'
        from stored
      ), due as (
        update transactions t set final = false, version = version + 1, updated_at = now(), ${makeDue(ctx.sql)}
        where ${key} and exists (select from stored)
        returning pg_notify(${SYNC_DUE}, ''),
          pg_notify(${TRANSACTION_CHANGED}, ${JSON.stringify([merchantCode, transactionId])})
      )
      select status, missing, payment_method as "paymentMethod", refundable::text as refundable,
        (select amount::text from stored) as amount, (select currency from transactions where ${key}) as currency,
        now()::text as now
      from payment`,
  ])
  const [found] = rows
  if (!found) throw new DomainError('payment_not_found', `No payment ${paymentId}`)
  if (found.amount === null) throw explainRefusal(paymentId, found, amount, receiver)
  await caps.charge(found.amount)
  const { currency, refundable, now } = found
  const refund = { ...NEW_REFUND, refundId, paymentId, transactionId, amount: found.amount }
  const facts = { reason: reason ?? null, receiverShown: shown, requestedAt: now, updatedAt: now }
  return {
    amount: found.amount,
    refundable,
    currency,
    stored: { refund: { ...refund, ...facts }, currency },
  }
}

const NEW_REFUND = {
  status: 'pending' as const,
  inferred: false,
  gatewayRefundId: null,
  failureSource: null,
  failureReason: null,
  failureMessage: null,
}

/** Why nothing was stored, in the order in which the reasons matter to the caller. */
function explainRefusal(
  paymentId: string,
  { status, missing, paymentMethod, refundable }: Stored,
  amount: string | undefined,
  receiver: Receiver | undefined,
): Error {
  if (status !== 'SUCCESS' || missing) {
    const why = missing ? 'the gateway does not list it any more' : `it is ${status}`
    return new DomainError(
      'payment_not_refundable',
      `Payment ${paymentId} cannot be refunded: ${why}`,
    )
  }
  if (paymentMethod === 'QR' && !receiver) {
    const message = 'is needed, because the payment was made by QR'
    return new DomainError('receiver_required', `receiver: ${message}`, {
      errors: [{ path: 'receiver', message }],
    })
  }
  const isNothing = compareAmounts(refundable, '0') === 0
  if (isNothing || compareAmounts(amount ?? refundable, refundable) > 0) {
    return new DomainError('exceeds_refundable', `Only ${refundable} is left to refund`, {
      extra: { refundableAmount: refundable },
    })
  }
  return new KeyTakenError()
}
