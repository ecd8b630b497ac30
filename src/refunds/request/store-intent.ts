import type { Access } from '../../access/types.ts'
import type { Context } from '../../context.ts'
import { SYNC_DUE, TRANSACTION_CHANGED } from '../../db/channels.ts'
import { DomainError } from '../../errors.ts'
import { REFUNDABLE_SQL } from '../../payments/refundable.ts'
import { pipeline } from '../../platform/postgres/pipeline.ts'
import type { Tx } from '../../platform/postgres/types.ts'
import { makeDue } from '../../transactions/make-due.ts'
import { encryptReceiver, maskReceiver } from '../receiver.ts'
import type { ShownRefund } from '../view.ts'
import { lockCaps } from './caps.ts'
import { explainRefusal, type RefusingPayment } from './explain-refusal.ts'
import type { RefundTarget } from './find-target.ts'
import type { RefundAmounts, RefundIntent, RefundParams } from './types.ts'

const OPERATION = 'POST /v1/payments/{paymentId}/refunds'

/** A refund to store, and who requests it. */
export type IntentToStore = {
  access: Access
  target: RefundTarget
  params: RefundParams
  intent: RefundIntent
}

/**
 * Stores the intent of a refund, with its history and audit entries, and makes its transaction due.
 * @throws DomainError when the refund is refused, KeyTakenError when a concurrent request used the key;
 *   the caller rolls back
 */
export async function storeIntent(
  ctx: Pick<Context, 'config' | 'encryption' | 'sql'>,
  tx: Tx,
  toStore: IntentToStore,
): Promise<RefundAmounts & { stored: ShownRefund }> {
  const { access, target, params, intent } = toStore
  refuseUnsendable(ctx, target.merchantCode)
  const caps = await lockCaps(tx, access)
  const { receiver, paymentId } = params
  const { refundId } = intent
  const encrypted = receiver ? encryptReceiver(ctx.encryption, receiver, refundId) : null
  const masked = receiver && maskReceiver(receiver)
  const shown = masked ? encryptReceiver(ctx.encryption, masked, refundId) : null
  const found = await insertIntent(ctx, tx, toStore, { encrypted, shown })
  if (!found) throw new DomainError('payment_not_found', `No payment ${paymentId}`)
  const { amount, refundable, currency, now } = found
  if (amount === null) throw explainRefusal(found, params)
  await caps.consume(amount)
  const refund = {
    ...NEW_REFUND,
    refundId,
    paymentId: target.paymentId,
    transactionId: target.transactionId,
    amount,
    reason: params.reason ?? null,
    receiverShown: shown,
    requestedAt: now,
    updatedAt: now,
  }
  return { amount, refundable, currency, stored: { refund, currency } }
}

const NEW_REFUND = {
  status: 'pending' as const,
  inferred: false,
  gatewayRefundId: null,
  failureSource: null,
  failureReason: null,
  failureMessage: null,
}

/** Refuses refunds that could not be sent now: stored, they would be sent unexpectedly later. */
function refuseUnsendable({ config }: Pick<Context, 'config'>, merchantCode: string): void {
  if (!config.REFUNDS_ENABLED) {
    const detail = 'New refunds are disabled at the moment; refunds in progress continue'
    throw new DomainError('refunds_disabled', detail)
  }
  if (!config.accounts.some((account) => account.merchantCode === merchantCode)) {
    const detail = `Merchant account ${merchantCode} is no longer configured, so the gateway cannot be called`
    throw new DomainError('merchant_not_found', detail)
  }
}

type InsertedIntent = RefusingPayment & {
  currency: string | null
  /** Null when nothing was stored. */
  amount: string | null
  now: string
}

/**
 * Locks in order (the key's day by `lockCaps`, transaction, payment), then sums in a second statement: a sum
 * computed before the wait would be stale. That statement stores the intent, with the audit entry, only if
 * all conditions hold; the payment it read shows which one did not. Both statements are sent at once.
 * @returns undefined when there is no such payment
 */
async function insertIntent(
  { sql }: Pick<Context, 'sql'>,
  tx: Tx,
  { access, target, params, intent }: IntentToStore,
  { encrypted, shown }: { encrypted: Buffer | null; shown: Buffer | null },
): Promise<InsertedIntent | undefined> {
  const { merchantCode, transactionId, paymentId } = target
  const { refundId, idempotencyKey, fingerprint } = intent
  const { amount = null, reason = null } = params
  const key = tx`merchant_code = ${merchantCode} and transaction_id = ${transactionId}`
  const [, rows] = await pipeline(
    tx`
      select from transactions t join payments p using (merchant_code, transaction_id)
      where t.merchant_code = ${merchantCode} and t.transaction_id = ${transactionId}
        and p.payment_id = ${paymentId} for update of t, p`,
    tx<InsertedIntent[]>`
      with payment as (
        select status, missing, unreadable, payment_method, ${tx.unsafe(REFUNDABLE_SQL)} as refundable
        from payments where merchant_code = ${merchantCode} and payment_id = ${paymentId}
      ), stored as (
        insert into refunds (merchant_code, refund_id, transaction_id, payment_id, amount, reason, receiver,
          receiver_shown, idempotency_key, fingerprint, requested_by, status, due_at)
        select ${merchantCode}, ${refundId}, ${transactionId}, ${paymentId},
          coalesce(${amount}::numeric, refundable), ${reason}, ${encrypted}, ${shown},
          ${idempotencyKey}, ${fingerprint}, ${access.name}, 'pending', now()
        from payment
        where status = 'SUCCESS' and not missing and not unreadable and (payment_method <> 'QR' or ${encrypted !== null})
          and refundable > 0 and coalesce(${amount}::numeric, refundable) <= refundable
        on conflict (merchant_code, idempotency_key) do nothing
        returning refund_id, amount
      ), recorded as (
        insert into changes (merchant_code, transaction_id, payment_id, refund_id, field, after, cause)
        select ${merchantCode}, ${transactionId}, ${paymentId}, refund_id, 'status', 'pending',
          ${`requested with API key ${access.name}`} from stored
      ), audited as (
        insert into audit_entries (key_id, actor, operation, merchant_code, object_id, request_id, outcome)
        select ${access.id}, ${access.name}, ${OPERATION}, ${merchantCode}, refund_id, ${access.requestId}, 'done'
        from stored
      ), due as (
        update transactions t set final = false, version = version + 1, updated_at = now(), ${makeDue(sql)}
        where ${key} and exists (select from stored)
        returning pg_notify(${SYNC_DUE}, ''),
          pg_notify(${TRANSACTION_CHANGED}, ${JSON.stringify([merchantCode, transactionId])})
      )
      select status, missing, unreadable, payment_method as "paymentMethod", refundable::text as refundable,
        (select amount::text from stored) as amount, (select currency from transactions where ${key}) as currency,
        now()::text as now
      from payment`,
  )
  return rows[0]
}
