import { describeActor } from '../access/audit.ts'
import { foldName } from '../access/principal.ts'
import type { Access } from '../access/types.ts'
import type { Context } from '../context.ts'
import type { OrderFacts } from '../db/order-facts.ts'
import { REFUNDABLE_SQL } from '../payments/find-payments.ts'
import { byKey } from '../platform/postgres/by-key.ts'
import type { Tx } from '../platform/postgres/types.ts'
import { makeDue } from '../transactions/due.ts'
import type { Caps } from './caps.ts'
import { selectPriorEvidence, selectStatus, type TakenExternal } from './first-status.ts'
import { isUnendedSql } from './lifecycle.ts'
import type { RefundIntent, RefundParams } from './request-schema.ts'
import {
  MAX_OPEN,
  type RefundTarget,
  type RefusingPayment,
  transactionVersionSql,
} from './target.ts'

/** The routes that store refunds: of keys and of people, of a payment and of a surplus. */
const OPERATIONS = {
  key: {
    payment: 'POST /v1/payments/{paymentId}/refunds',
    surplus: 'POST /v1/transactions/{transactionId}/surplus-refund',
  },
  person: {
    payment: 'POST /console/payments/{merchant}/{id}/refund',
    surplus: 'POST /console/transactions/{merchant}/{id}/surplus',
  },
}

const PROVEN = 'the gateway notified its success before the refund was stored; it is not sent again'
const KNOWN =
  'the gateway notified this request id before the refund was stored, and its success is not known beyond doubt; it is not sent again'

/** The refunds of the payment that have not ended, in SQL: as many as may be, at most. */
const OPEN_SQL = `(select count(*) from (
    select from refunds as r
    where ${isUnendedSql('r')} and ${byKey('r', ['merchant_code', 'payment_id'], 'payments')}
    limit ${MAX_OPEN}) as own)`

/** A refund to store, and who requests it. */
export type IntentToStore = {
  access: Access
  target: RefundTarget
  params: RefundParams
  intent: RefundIntent
  /** All that was paid beyond one success, of which it was requested: a decimal string. */
  surplus?: string
}

export type InsertedIntent = Omit<RefusingPayment, 'status'> & {
  paymentStatus: string
  order: OrderFacts
  /** As verified notifications name it; null also where no cap depends on it. */
  verifiedCurrency: string | null
  /** Something is known of a refund with this request id, whose row was lost. */
  isKnown: boolean
  /** The external refund that it takes the place of; null for none. */
  taken: TakenExternal | null
  /** Null when nothing was stored. */
  amount: string | null
  /** Of the refund; null when nothing was stored. */
  status: 'awaiting_approval' | 'pending' | 'succeeded' | 'needs_review' | null
  now: string
}

/**
 * Locks the transaction, then the payment, if it is still the transaction's. The lock of the key's day comes
 * before them.
 */
export function lockPayment(tx: Tx, target: RefundTarget) {
  return tx`
    select from ${selectKey(tx, target)} cross join lateral (
      select t.transaction_id from transactions as t
      where ${tx.unsafe(byKey('t', ['merchant_code', 'transaction_id'], 'k'))} limit 1 for update
    ) as t cross join lateral (
      select from payments as p where p.transaction_id = t.transaction_id
        and ${tx.unsafe(byKey('p', ['merchant_code', 'payment_id'], 'k'))} limit 1 for update
    ) as p`
}

/** The keys of the payment and of its transaction, as `k` for `byKey`. */
function selectKey(tx: Tx, { merchantCode, transactionId, paymentId }: RefundTarget) {
  return tx`(
    select ${merchantCode}::text as merchant_code, ${transactionId}::text as transaction_id,
      ${paymentId}::text as payment_id) as k`
}

/**
 * Stores the intent, with the audit entry, only if all conditions hold; the payment it read shows which one did
 * not. It sums what is left, so it has to be a later statement than the one that locked the payment: a sum
 * computed before the wait would be stale. The same holds for the version that the caller expects, and for the refunds
 * of the transaction that count together for the approval.
 *
 * A request id of which something is known already belongs to a refund whose row was lost: it is stored whatever is
 * left of the payment, as succeeded or for review, and is not sent. One that succeeded keeps its receiver masked only.
 * @returns no row when the payment is no longer the transaction's: it is not locked, and nothing is stored
 */
export function insertIntent(
  { config, sql }: Pick<Context, 'config' | 'sql'>,
  tx: Tx,
  toStore: IntentToStore,
  { encrypted, shown, caps }: { encrypted: Buffer | null; shown: Buffer | null; caps: Caps },
): PromiseLike<InsertedIntent[]> {
  const { access, target, params, intent, surplus } = toStore
  const { merchantCode, transactionId, paymentId } = target
  const { refundId, idempotencyKey, fingerprint } = intent
  const { amount = null, reason = null, onBehalfOf = null, metadata = {} } = params
  const keys = selectKey(tx, target)
  const { keyId = null, day = null } = caps.counted ?? {}
  return tx<InsertedIntent[]>`
      with payment as (
        select status, missing, unreadable, payment_method, hold ->> 'reason' as held, (
            select m.hold ->> 'reason' from merchant_accounts as m where m.merchant_code = k.merchant_code
          ) as account_held, ${tx.unsafe(REFUNDABLE_SQL)} as refundable, ${tx.unsafe(OPEN_SQL)} as open,
          ${isStale(tx, toStore)} as stale
        from ${keys} cross join lateral (
          select * from payments as p where p.transaction_id = k.transaction_id
            and ${tx.unsafe(byKey('p', ['merchant_code', 'payment_id'], 'k'))} limit 1) as payments
      ), ${selectPriorEvidence(tx, { merchantCode, paymentId, refundId, amount })}, asked as (
        select payment.*, judged.found, judged.proves, judged.notified_at, judged.ipn_event_id,
          proves and judged.matched as matched, proves and judged.in_first_sight as in_first_sight,
          coalesce(${amount}::numeric, case when found then judged.amount end, refundable) as amount
        from payment, judged
      ), ${selectStatus(tx, config, target, caps.byCurrency)}, stored as (
        insert into refunds (merchant_code, refund_id, transaction_id, payment_id, amount, reason, metadata, receiver,
          receiver_shown, surplus, idempotency_key, fingerprint,
          fingerprint_key_id, requested_by, requested_principal, on_behalf_of, folded_on_behalf_of, needs_approval, status, due_at, matched,
          in_first_sight, success_notified_at, review, cap_key_id, cap_day, cap_currency)
        select ${merchantCode}, ${refundId}, ${transactionId}, ${paymentId}, amount, ${reason}, ${JSON.stringify(metadata)}::text::jsonb,
          case when next <> 'succeeded' then ${encrypted}::bytea end,
          ${shown}, ${surplus !== undefined}, ${idempotencyKey}, ${fingerprint.value}, ${fingerprint.keyId}, ${access.name}, ${access.principal}, ${onBehalfOf}, ${onBehalfOf && foldName(onBehalfOf)}, next = 'awaiting_approval', next,
          case when next = 'pending' then now() end,
          matched, in_first_sight, case when proves then notified_at end,
          case when next = 'needs_review' then 'contradicted' end,
          case when not found then ${keyId}::uuid end, case when not found then ${day}::date end,
          case when not found then verified.currency end
        from wanted, verified
        where amount > 0 and (found or (not stale and status = 'SUCCESS' and not missing and not unreadable
          and held is null and account_held is null and open < ${tx.unsafe(String(MAX_OPEN))}
          and (payment_method <> 'QR' or ${encrypted !== null}) and amount <= refundable))
        on conflict do nothing
        returning refund_id, amount, status
      ), ${recordIntent(sql, tx, toStore)}
      select payment.status as "paymentStatus", missing, unreadable, held, account_held as "accountHeld", payment_method as "paymentMethod",
        refundable::text as refundable, open, stale, coalesce((select found from judged), false) as "isKnown", (select amount::text from stored) as amount,
        (select status from stored) as status, (
          select json_build_object('externalId', id, 'before', before) from taken) as taken, (select currency from verified) as "verifiedCurrency", (
          select json_build_object('currency', t.currency, 'orderId', t.order_id, 'merchantTxnId', t.merchant_txn_id)
          from ${keys} cross join lateral (
            select * from transactions as t
            where ${tx.unsafe(byKey('t', ['merchant_code', 'transaction_id'], 'k'))} limit 1) as t) as "order",
        now()::text as now
      from payment`
}

/** Whether the transaction, which is locked, is not as the caller expects it. */
function isStale(tx: Tx, { target, params: { expectedVersion } }: IntentToStore) {
  if (expectedVersion === undefined) return tx`false`
  return tx`${expectedVersion} is distinct from (
    select ${tx.unsafe(transactionVersionSql('t'))} from ${selectKey(tx, target)} cross join lateral (
      select * from transactions as t
      where ${tx.unsafe(byKey('t', ['merchant_code', 'transaction_id'], 'k'))} limit 1) as t)`
}

function describeRequest({ access, params, surplus }: IntentToStore): string {
  const { reason, onBehalfOf } = params
  const what = surplus !== undefined ? 'what was paid beyond one success, ' : ''
  const forWhom = onBehalfOf === undefined ? '' : ` on behalf of ${onBehalfOf}`
  return `${what}requested ${describeActor(access)}${forWhom}${reason ? `: ${reason}` : ''}`
}

/** Common table expressions that follow `stored`: its history, its audit entry, and the transaction that is due. */
function recordIntent(sql: Context['sql'], tx: Tx, toStore: IntentToStore) {
  const { access, target, surplus } = toStore
  const operation =
    OPERATIONS[access.isPerson ? 'person' : 'key'][surplus === undefined ? 'payment' : 'surplus']
  const { merchantCode, transactionId, paymentId } = target
  return tx`
    taken as (
        update foreign_refunds f set outcome = 'own', matched = false
        from external
        where f.merchant_code = ${merchantCode} and f.id = external.id and external.outcome is distinct from 'own'
          and exists (select from stored where status = 'succeeded')
        returning f.id,
          coalesce(external.outcome, case when external.matched then 'matched' else 'reserved' end) as before
      ), recorded as (
        insert into changes
          (merchant_code, transaction_id, payment_id, refund_id, field, before, after, ipn_event_id, cause)
        select ${merchantCode}, ${transactionId}, ${paymentId}, refund_id, 'status', step.*
        from stored, wanted, lateral (
          select null, case when found then 'pending' else next end, null::bigint, ${describeRequest(toStore)}
          union all
          select 'pending', next, wanted.ipn_event_id, case when proves then ${PROVEN} else ${KNOWN} end
          where found) as step
      ), audited as (
        insert into audit_entries (key_id, actor, operation, merchant_code, object_id, request_id, outcome)
        select ${access.id}, ${access.name}, ${operation}, ${merchantCode}, refund_id, ${access.requestId}, 'done'
        from stored
      ), due as (
        update transactions t set final = false, version = version + 1, updated_at = now(), ${makeDue(sql)}
        where merchant_code = ${merchantCode} and transaction_id = ${transactionId}
          and exists (select from stored)
      )`
}
