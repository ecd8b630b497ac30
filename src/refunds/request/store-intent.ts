import { selectPrincipal } from '../../access/principal.ts'
import type { Access } from '../../access/types.ts'
import type { Context } from '../../context.ts'
import { SYNC_DUE } from '../../db/channels.ts'
import { DomainError } from '../../errors.ts'
import { exceedsDecimals } from '../../money.ts'
import { REFUNDABLE_SQL } from '../../payments/refundable.ts'
import { byKey } from '../../platform/postgres/by-key.ts'
import { notifyAfterCommit } from '../../platform/postgres/notify.ts'
import { pipeline } from '../../platform/postgres/pipeline.ts'
import type { Tx } from '../../platform/postgres/types.ts'
import { makeDue } from '../../transactions/make-due.ts'
import { notifyTransactionChanged } from '../../transactions/notify-changed.ts'
import { encryptReceiver, maskReceiver } from '../receiver.ts'
import type { ShownRefund } from '../view.ts'
import { lockCaps } from './caps.ts'
import { explainRefusal, type RefusingPayment } from './explain-refusal.ts'
import type { RefundTarget } from './find-target.ts'
import { selectPriorEvidence } from './prior-evidence.ts'
import { selectStatus } from './select-status.ts'
import type { RefundAmounts, RefundIntent, RefundParams } from './types.ts'

const OPERATION = 'POST /v1/payments/{paymentId}/refunds'

const PROVEN = 'the gateway notified its success before the refund was stored; it is not sent again'
const KNOWN =
  'the gateway notified this request id before the refund was stored, and not as its success; it is not sent again'

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
  const caps = await lockCaps(tx, access, ctx.config)
  const { receiver, paymentId } = params
  const { refundId } = intent
  const encrypted = receiver
    ? encryptReceiver(ctx.encryption, receiver, 'receiver', refundId)
    : null
  const masked = receiver && maskReceiver(receiver)
  const shown = masked ? encryptReceiver(ctx.encryption, masked, 'receiver_shown', refundId) : null
  const found = await insertIntent(ctx, tx, toStore, { encrypted, shown })
  if (!found) {
    const detail = `Payment ${paymentId} has changed in this moment; repeat the request with the same key`
    throw new DomainError('unavailable', detail)
  }
  const { amount, refundable, currency, now, status } = found
  if (currency !== null) refuseDecimals(params.amount, currency)
  if (amount === null || status === null) {
    throw explainRefusal({ ...found, status: found.paymentStatus }, params)
  }
  notifyAfterCommit(tx, SYNC_DUE)
  notifyTransactionChanged(tx, target)
  // What was sent before its row was lost was counted then, and is not sent again.
  if (status === 'pending' || status === 'awaiting_approval') await caps.consume(amount)
  const refund = {
    ...NEW_REFUND,
    status,
    refundId,
    paymentId: target.paymentId,
    transactionId: target.transactionId,
    amount,
    reason: params.reason ?? null,
    receiverShown: shown,
    requestedBy: access.name,
    onBehalfOf: params.onBehalfOf ?? null,
    needsApproval: status === 'awaiting_approval',
    requestedAt: now,
    updatedAt: now,
  }
  return { amount, refundable, currency, stored: { refund, currency } }
}

const NEW_REFUND = {
  inferred: false,
  gatewayRefundId: null,
  failureSource: null,
  failureReason: null,
  failureMessage: null,
  decidedBy: null,
  decidedReason: null,
  approvedAt: null,
  declinedAt: null,
  selfDecided: false,
}

function refuseDecimals(amount: string | undefined, currency: string): void {
  if (amount === undefined || !exceedsDecimals(amount, currency)) return
  const message = `has more decimals than ${currency} has`
  throw new DomainError('invalid_request', `amount: ${message}`, {
    errors: [{ path: 'amount', message }],
  })
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

type InsertedIntent = Omit<RefusingPayment, 'status'> & {
  paymentStatus: string
  currency: string | null
  /** Null when nothing was stored. */
  amount: string | null
  /** Of the refund; null when nothing was stored. */
  status: 'awaiting_approval' | 'pending' | 'succeeded' | 'needs_review' | null
  now: string
}

/**
 * Locks in order (the key's day by `lockCaps`, transaction, payment), then sums in a second statement: a sum
 * computed before the wait would be stale. That statement stores the intent, with the audit entry, only if
 * all conditions hold; the payment it read shows which one did not. Both statements are sent at once.
 *
 * A request id of which something is known already belongs to a refund whose row was lost: it is stored whatever is
 * left of the payment, as succeeded or for review, and is not sent.
 * @returns undefined when the payment is no longer the transaction's: it is not locked, and nothing is stored
 */
async function insertIntent(
  { config, sql }: Pick<Context, 'config' | 'sql'>,
  tx: Tx,
  toStore: IntentToStore,
  { encrypted, shown }: { encrypted: Buffer | null; shown: Buffer | null },
): Promise<InsertedIntent | undefined> {
  const { access, target, params, intent } = toStore
  const { merchantCode, transactionId, paymentId } = target
  const { refundId, idempotencyKey, fingerprint } = intent
  const { amount = null, reason = null, onBehalfOf = null } = params
  const keys = tx`(
    select ${merchantCode}::text as merchant_code, ${transactionId}::text as transaction_id,
      ${paymentId}::text as payment_id) as k`
  const [, rows] = await pipeline(
    tx`
      select from ${keys} cross join lateral (
        select t.transaction_id from transactions as t
        where ${tx.unsafe(byKey('t', ['merchant_code', 'transaction_id'], 'k'))} limit 1 for update
      ) as t cross join lateral (
        select from payments as p where p.transaction_id = t.transaction_id
          and ${tx.unsafe(byKey('p', ['merchant_code', 'payment_id'], 'k'))} limit 1 for update
      ) as p`,
    tx<InsertedIntent[]>`
      with payment as (
        select status, missing, unreadable, payment_method, ${tx.unsafe(REFUNDABLE_SQL)} as refundable
        from ${keys} cross join lateral (
          select * from payments as p where p.transaction_id = k.transaction_id
            and ${tx.unsafe(byKey('p', ['merchant_code', 'payment_id'], 'k'))} limit 1) as payments
      ), ${selectPriorEvidence(tx, { merchantCode, paymentId, refundId, amount })}, asked as (
        select payment.*, judged.found, judged.proves, judged.notified_at, judged.ipn_event_id,
          proves and judged.matched as matched, proves and judged.in_first_sight as in_first_sight,
          coalesce(${amount}::numeric, case when found then judged.amount end, refundable) as amount
        from payment, judged
      ), ${selectStatus(tx, config, target)}, stored as (
        insert into refunds (merchant_code, refund_id, transaction_id, payment_id, amount, reason, receiver,
          receiver_shown, idempotency_key, fingerprint,
          fingerprint_key_id, requested_by, requested_principal, on_behalf_of, needs_approval, status, due_at, known, matched,
          in_first_sight, success_notified_at, review)
        select ${merchantCode}, ${refundId}, ${transactionId}, ${paymentId}, amount, ${reason}, ${encrypted},
          ${shown}, ${idempotencyKey}, ${fingerprint.value}, ${fingerprint.keyId}, ${access.name}, ${selectPrincipal(tx, access.id)}, ${onBehalfOf}, next = 'awaiting_approval', next,
          case when next = 'pending' then now() end,
          proves, matched, in_first_sight, case when proves then notified_at end,
          case when next = 'needs_review' then 'contradicted' end
        from wanted
        where amount > 0 and (found or (status = 'SUCCESS' and not missing and not unreadable
          and (payment_method <> 'QR' or ${encrypted !== null}) and amount <= refundable))
        on conflict do nothing
        returning refund_id, amount, status
      ), ${recordIntent(sql, tx, toStore)}
      select payment.status as "paymentStatus", missing, unreadable, payment_method as "paymentMethod",
        refundable::text as refundable, (select amount::text from stored) as amount,
        (select status from stored) as status, (
          select currency from ${keys} cross join lateral (
            select currency from transactions as t
            where ${tx.unsafe(byKey('t', ['merchant_code', 'transaction_id'], 'k'))} limit 1) as t) as currency,
        now()::text as now
      from payment`,
  )
  return rows[0]
}

function describeRequest({ name }: Access, { reason, onBehalfOf }: RefundParams): string {
  const forWhom = onBehalfOf === undefined ? '' : ` on behalf of ${onBehalfOf}`
  return `requested with API key ${name}${forWhom}${reason ? `: ${reason}` : ''}`
}

/** Common table expressions that follow `stored`: its history, its audit entry, and the transaction that is due. */
function recordIntent(
  sql: Context['sql'],
  tx: Tx,
  { access, target, params, intent: { refundId } }: IntentToStore,
) {
  const { merchantCode, transactionId, paymentId } = target
  return tx`
    taken as (
        update foreign_refunds set outcome = 'own', matched = false
        where merchant_code = ${merchantCode} and request_id = ${refundId}
          and exists (select from stored where status = 'succeeded')
      ), recorded as (
        insert into changes
          (merchant_code, transaction_id, payment_id, refund_id, field, before, after, ipn_event_id, cause)
        select ${merchantCode}, ${transactionId}, ${paymentId}, refund_id, 'status', step.*
        from stored, wanted, lateral (
          select null, case when found then 'pending' else next end, null::bigint, ${describeRequest(access, params)}
          union all
          select 'pending', next, wanted.ipn_event_id, case when proves then ${PROVEN} else ${KNOWN} end
          where found) as step
      ), audited as (
        insert into audit_entries (key_id, actor, operation, merchant_code, object_id, request_id, outcome)
        select ${access.id}, ${access.name}, ${OPERATION}, ${merchantCode}, refund_id, ${access.requestId}, 'done'
        from stored
      ), due as (
        update transactions t set final = false, version = version + 1, updated_at = now(), ${makeDue(sql)}
        where merchant_code = ${merchantCode} and transaction_id = ${transactionId}
          and exists (select from stored)
      )`
}
