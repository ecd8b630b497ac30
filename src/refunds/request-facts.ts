import { lockActor } from '../access/principal.ts'
import type { Access } from '../access/types.ts'
import type { OrderFacts } from '../db/order-facts.ts'
import { requireOnly } from '../errors.ts'
import { REFUNDABLE_SQL } from '../payments/find-payments.ts'
import type { Fingerprint } from '../platform/crypto/encryption.ts'
import { byExpressions, byKey } from '../platform/postgres/by-key.ts'
import { pipeline } from '../platform/postgres/transaction.ts'
import type { Tx } from '../platform/postgres/types.ts'
import { countsToday, type DayTotals, lockDay, readDay } from './caps.ts'
import { isUnendedSql } from './lifecycle.ts'
import type { RefundSubject } from './request-schema.ts'

/** What a refund was asked for: a payment, or a transaction of whose order more than one success was paid. */
export type RefundTarget = {
  merchantCode: string
  transactionId: string
  /** The refund that was stored under the idempotency key, with the fingerprint of its request; null for none. */
  replay: (Fingerprint & { refundId: string }) | null
}

type TargetRow = Omit<RefundTarget, 'replay'> & {
  refundId: string | null
  value: Buffer
  keyId: string
}

/**
 * Finds what is to be refunded and the refund of the idempotency key, before anything else is checked: a replay gets
 * the same answer whatever has changed since.
 * @throws DomainError `payment_not_found`, `transaction_not_found`, `ambiguous_merchant`
 */
export async function findTarget(
  sql: Tx,
  merchants: readonly string[],
  subject: RefundSubject,
  idempotencyKey: string,
): Promise<RefundTarget> {
  const [kind, column, id] =
    'paymentId' in subject
      ? (['payment', 'payment_id', subject.paymentId] as const)
      : (['transaction', 'transaction_id', subject.transactionId] as const)
  const rows = await sql<TargetRow[]>`
    select s.merchant_code as "merchantCode", s.transaction_id as "transactionId",
      r.refund_id as "refundId", r.fingerprint as value, r.fingerprint_key_id as "keyId"
    from (
      select merchant_code, ${id}::text as ${sql(column)}, ${idempotencyKey}::text as idempotency_key
      from json_array_elements_text(${JSON.stringify(merchants)}::json) as merchant_code
    ) as k cross join lateral (
      select merchant_code, transaction_id from ${sql(`${kind}s`)} as s
      where ${sql.unsafe(byKey('s', ['merchant_code', column], 'k'))} limit 1
    ) as s left join lateral (
      select * from refunds as r
      where ${sql.unsafe(byKey('r', ['merchant_code', 'idempotency_key'], 'k'))} limit 1) as r on true`
  const { merchantCode, transactionId, refundId, value, keyId } = requireOnly(rows, kind, id)
  const replay = refundId === null ? null : { refundId, value, keyId }
  return { merchantCode, transactionId, replay }
}

/**
 * Refunds of one payment that have not ended: each is asked about, and every answer of the gateway is compared with all
 * of them. Goods come back in fewer parts.
 */
export const MAX_OPEN = 100

export type PaymentKey = { merchantCode: string; transactionId: string; paymentId: string }

/** What is known of a request's payment under its locks; amounts are decimal strings. */
export type RequestFacts = {
  payment: {
    status: string
    missing: boolean
    unreadable: boolean
    paymentMethod: string
    /** The reason of the payment's and of its account's hold; null where there is none. */
    held: string | null
    accountHeld: string | null
    refundable: string
    /** Its refunds that have not ended, counted up to `MAX_OPEN`. */
    open: number
    /** Of its transaction, for `expectedVersion`. */
    version: string
    /** Of its transaction, which the request raises (`event-order.ts`). */
    want: number
    /** The currency of the transaction, if verified notifications name one and only one, in any case. */
    verifiedCurrency: string | null
    /** The currency that the transaction shows, in capitals; null where a verified notification names another. */
    requestedCurrency: string | null
    /** The transaction's own refunds that have not failed. */
    ownTotal: string
  }
  order: OrderFacts
  /** What is known of the request id: of a refund whose row was lost. */
  prior: readonly PriorEvidence[]
  /** A refund of the payment that was inferred and is still reserved, if any. */
  inferred: InferredRefund | undefined
  /** What the key has refunded today; undefined where no total is counted. */
  today: DayTotals | undefined
}

/** A verified notification of a request id, or an external refund with it. */
export type PriorEvidence = {
  ipnEventId: number | null
  paymentId: string | null
  amount: string | null
  notifiedAt: string | null
  /** Of a notification, as it is weighed. */
  code: string | null
  reading: number
  /** Of an external refund; null for a notification. */
  externalId: string | null
  uncontradicted: boolean
  matched: boolean
  outcome: 'part_of_first_sight' | 'released' | 'never_happened' | 'own' | null
}

/**
 * Locks the key's day, the transaction and its payment, in this order, and then reads what a request is judged by, in
 * statements of their own: a sum from before the wait would be stale.
 * @returns undefined when the payment is no longer the transaction's
 */
export async function lockAndReadFacts(
  tx: Tx,
  access: Access,
  key: PaymentKey,
  { refundId, zone }: { refundId: string; zone: string },
): Promise<RequestFacts | undefined> {
  const isCounted = countsToday(access)
  const [, today, , rows, prior, inferred] = await pipeline(
    isCounted && lockDay(tx, access, zone),
    isCounted && readDay(tx, access, zone),
    lockPayment(tx, key),
    readPayment(tx, key),
    readPriorEvidence(tx, key.merchantCode, refundId),
    findInferred(tx, key.merchantCode, [key.paymentId]),
    lockActor(tx, access),
  )
  const [row] = rows
  if (!row) return undefined
  const { currency, orderId, merchantTxnId, ...payment } = row
  const order = { currency, orderId, merchantTxnId }
  return { payment, order, prior, inferred, today: today || undefined }
}

function selectKey(tx: Tx, { merchantCode, transactionId, paymentId }: PaymentKey) {
  return tx`(
    select ${merchantCode}::text as merchant_code, ${transactionId}::text as transaction_id,
      ${paymentId}::text as payment_id) as k`
}

const TRANSACTION = byKey('t', ['merchant_code', 'transaction_id'], 'k')
const PAYMENT = byKey('p', ['merchant_code', 'payment_id'], 'k')

async function lockPayment(tx: Tx, key: PaymentKey): Promise<void> {
  await tx`
    select from ${selectKey(tx, key)} cross join lateral (
      select t.transaction_id from transactions as t where ${tx.unsafe(TRANSACTION)} limit 1 for update
    ) as t cross join lateral (
      select from payments as p where p.transaction_id = t.transaction_id
        and ${tx.unsafe(PAYMENT)} limit 1 for update
    ) as p`
}

const OPEN = `(select count(*)::int from (
    select from refunds as r
    where ${isUnendedSql('r')} and ${byKey('r', ['merchant_code', 'payment_id'], 'payments')}
    limit ${MAX_OPEN}) as own)`

/** The currency that verified notifications agree on, also one that is deleted and named the transaction. */
const CURRENCY = `(
    select case when count(distinct upper(btrim(e.currency))) = 1 and (not t.order_verified
        or max(upper(btrim(e.currency))) = upper(btrim(coalesce(t.currency, max(e.currency)))))
      then max(upper(btrim(e.currency))) filter (where upper(btrim(e.currency)) ~ '^[A-Z]{3}$') end
    from (
      select * from ipn_events as e where ${byKey('e', ['merchant_code', 'transaction_id'], 'k')} offset 0) as e
    where e.verdict = 'verified' and e.reading = 1)`

/** Whatever named it: a caller and an approver go by what they see. Where notifications disagree they see that, too. */
const REQUESTED_CURRENCY = `(
    select nullif(upper(btrim(t.currency)), '') where not exists (
      select from (
        select * from ipn_events as e where ${byKey('e', ['merchant_code', 'transaction_id'], 'k')} offset 0) as e
      where e.verdict = 'verified' and e.reading = 1 and upper(btrim(e.currency)) <> upper(btrim(t.currency))))`

/** Parts of a payment, or several payments of one transaction, are no way below the threshold of the approval. */
const OWN_TOTAL = `(
    select coalesce(sum(r.amount), 0) from (
      select amount, status from refunds as r
      where ${byKey('r', ['merchant_code', 'transaction_id'], 'k')} offset 0) as r
    where r.status <> 'failed')`

type PaymentFacts = RequestFacts['payment'] & OrderFacts

async function readPayment(tx: Tx, key: PaymentKey): Promise<PaymentFacts[]> {
  return await tx<PaymentFacts[]>`
    select payments.status, missing, unreadable, payment_method as "paymentMethod",
      payments.hold ->> 'reason' as held, (
        select m.hold ->> 'reason' from merchant_accounts as m where m.merchant_code = k.merchant_code
      ) as "accountHeld", ${tx.unsafe(REFUNDABLE_SQL)} as refundable, ${tx.unsafe(OPEN)} as open,
      ${tx.unsafe(transactionVersionSql('t'))} as version, t.want, ${tx.unsafe(CURRENCY)} as "verifiedCurrency",
      ${tx.unsafe(REQUESTED_CURRENCY)} as "requestedCurrency", ${tx.unsafe(OWN_TOTAL)} as "ownTotal", t.currency, t.order_id as "orderId", t.merchant_txn_id as "merchantTxnId"
    from ${selectKey(tx, key)} cross join lateral (
      select * from transactions as t where ${tx.unsafe(TRANSACTION)} limit 1
    ) as t cross join lateral (
      select * from payments as p where p.transaction_id = k.transaction_id and ${tx.unsafe(PAYMENT)} limit 1
    ) as payments`
}

const NOTIFIED = byExpressions(
  ['e.merchant_code', 'lower(e.request_id)'],
  ['k.merchant_code', 'k.request_id'],
)

const UNCONTRADICTED = `f.failure_notified_at is null
  and (f.outcome is null or f.outcome not in ('released', 'never_happened'))`

/**
 * Reads what is known of a request id before its refund is stored, the first notified first: its verified
 * notifications, and its external refunds, which are kept for longer. Only a row that was lost can have been sent
 * before.
 */
export async function readPriorEvidence(
  tx: Tx,
  merchantCode: string,
  refundId: string,
): Promise<PriorEvidence[]> {
  return await tx<PriorEvidence[]>`
    with k as (select ${merchantCode}::text as merchant_code, ${refundId}::text as request_id)
    select * from (
      select e.id as "ipnEventId", e.payment_id as "paymentId", e.amount, e.first_received_at as "notifiedAt",
        e.code, e.reading, null::uuid as "externalId", false as uncontradicted, false as matched, null as outcome
      from k cross join lateral (
        select * from ipn_events as e where e.kind = 'refund' and ${tx.unsafe(NOTIFIED)} offset 0) as e
      where e.verdict = 'verified'
      union all
      select f.ipn_event_id, f.payment_id, f.amount, f.notified_at, null, 1, f.id, ${tx.unsafe(UNCONTRADICTED)},
        f.matched, f.outcome
      from k cross join lateral (
        select * from external_refunds as f
        where ${tx.unsafe(byKey('f', ['merchant_code', 'request_id'], 'k'))} offset 0) as f
    ) as evidence order by "notifiedAt", "ipnEventId"`
}

/** A refund whose success was inferred from growth, and whose amount stays reserved until it is known. */
export type InferredRefund = { refundId: string; amount: string }

/** Finds the oldest of them, which a person can confirm, so that more is left. The payments are locked. */
export async function findInferred(
  tx: Tx,
  merchantCode: string,
  paymentIds: readonly string[],
): Promise<InferredRefund | undefined> {
  const [found] = await tx<InferredRefund[]>`
    select r.refund_id as "refundId", r.amount from (
      select ${merchantCode}::text as merchant_code, payment_id
      from unnest(${[...paymentIds]}::text[]) as payment_id
    ) as k cross join lateral (
      select * from refunds as r
      where r.status = 'succeeded' and r.inferred and not r.matched and not r.in_first_sight
        and ${tx.unsafe(byKey('r', ['merchant_code', 'payment_id'], 'k'))} offset 0) as r
    order by r.requested_at, r.refund_id limit 1`
  return found
}

/** Formats the version of a transaction for `expectedVersion`; a payment that moves has another one. */
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
