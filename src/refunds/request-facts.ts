import { foldName, lockActor } from '../access/principal.ts'
import type { Access } from '../access/types.ts'
import type { Context } from '../context.ts'
import type { OrderFacts } from '../db/order-facts.ts'
import { isUnendedSql } from '../db/schema.ts'
import { REFUNDABLE_SQL } from '../payments/find-payments.ts'
import { byKey } from '../platform/postgres/by-key.ts'
import { pipeline } from '../platform/postgres/transaction.ts'
import type { Tx } from '../platform/postgres/types.ts'
import { countsToday, type DayTotals, lockDay, readDay } from './caps.ts'
import { BY_REQUEST_ID } from './evidence.ts'
import type { RequestParams } from './request-schema.ts'

/** Each open refund is queried, and every answer is compared with all of them. Returns have fewer parts. */
export const MAX_OPEN = 100

export type PaymentKey = { merchantCode: string; transactionId: string; paymentId: string }

/** What is known about the payment under its locks; amounts are decimal strings. */
export type RequestFacts = {
  transactionId: string
  /** When it was read, under the locks. */
  now: string
  payment: {
    status: string
    missing: boolean
    unreadable: boolean
    paymentMethod: string
    /** Why the payment, or its account, is held; null if it is not. */
    held: string | null
    accountHeld: string | null
    refundable: string
    /** Its refunds that have not ended, counted up to `MAX_OPEN`. */
    open: number
    /** The version of its transaction, for `expectedVersion`. */
    version: string
    /** The `want` of its transaction, which the request raises (`event-order.ts`). */
    want: number
    /** The transaction's currency, if verified notifications name exactly one, in any case. */
    verifiedCurrency: string | null
    /** The currency that the transaction shows, in capitals; null if a verified notification names another. */
    requestedCurrency: string | null
    /** The sum of the transaction's own refunds that have not failed. */
    ownTotal: string
  }
  order: OrderFacts
  /** What is known about the request id, from a refund whose row was lost. */
  prior: readonly PriorEvidence[]
  /** An inferred refund of the payment that is still reserved. */
  inferred: InferredRefund | undefined
  /** What the API key has refunded today; undefined if it has no daily cap. */
  today: DayTotals | undefined
  /** The person on whose behalf it is requested, as whoever decides is compared with them. */
  foldedOnBehalfOf: string | null
}

/** A verified notification of a request id, or an external refund that has it. */
export type PriorEvidence = {
  ipnEventId: number | null
  paymentId: string | null
  amount: string | null
  notifiedAt: string | null
  /** What `weigh` reads of a notification. */
  code: string | null
  reading: number
  /** Null for a notification. */
  externalId: string | null
  uncontradicted: boolean
  matched: boolean
  outcome: 'part_of_first_sight' | 'released' | 'never_happened' | 'own' | null
}

type RequestKey = Pick<PaymentKey, 'merchantCode' | 'paymentId'> & { refundId: string }

/**
 * Locks the API key's day, the transaction and its payment, in this order. What a request is judged by is read in
 * statements of their own: a sum from before the wait would be stale.
 * @returns undefined when nothing is locked, because the refund is stored already or the payment has just moved
 */
export async function lockAndReadFacts(
  { config: { CAPS_TIME_ZONE: zone } }: Pick<Context, 'config'>,
  tx: Tx,
  access: Access,
  key: RequestKey,
  { onBehalfOf }: Pick<RequestParams, 'onBehalfOf'>,
): Promise<RequestFacts | undefined> {
  const isCounted = countsToday(access)
  const [, today, isLocked, [row], prior, inferred, person] = await pipeline(
    isCounted && lockDay(tx, access, zone),
    isCounted && readDay(tx, access, zone),
    lockPayment(tx, key),
    readPayment(tx, key),
    readPriorEvidence(tx, key.merchantCode, key.refundId),
    findInferred(tx, key.merchantCode, [key.paymentId]),
    onBehalfOf !== undefined && foldPerson(tx, onBehalfOf),
    lockActor(tx, access),
  )
  if (!isLocked || !row) return undefined
  const { transactionId, now, currency, orderId, merchantTxnId, ...payment } = row
  const order = { currency, orderId, merchantTxnId }
  const foldedOnBehalfOf = person === false ? null : person
  const of = { prior, inferred, today: today || undefined, foldedOnBehalfOf }
  return { transactionId, now, payment, order, ...of }
}

function selectKey(tx: Tx, { merchantCode, paymentId, refundId }: RequestKey) {
  return tx`(
    select ${merchantCode}::text as merchant_code, ${paymentId}::text as payment_id,
      ${refundId}::uuid as refund_id) as k`
}

const REFUND = byKey('r', ['merchant_code', 'refund_id'], 'k')
const PAYMENT = byKey('p', ['merchant_code', 'payment_id'], 'k')
const transactionOf = (alias: string) => byKey('t', ['merchant_code', 'transaction_id'], alias)

/** A repeated request waits for nothing: only a new refund's payment is locked. */
async function lockPayment(tx: Tx, key: RequestKey): Promise<boolean> {
  const { count } = await tx`
    select from ${selectKey(tx, key)} cross join lateral (
      select p.merchant_code, p.transaction_id from payments as p where ${tx.unsafe(PAYMENT)} limit 1
    ) as own cross join lateral (
      select t.transaction_id from transactions as t
      where ${tx.unsafe(transactionOf('own'))} limit 1 for update
    ) as t cross join lateral (
      select from payments as p where p.transaction_id = t.transaction_id
        and ${tx.unsafe(PAYMENT)} limit 1 for update
    ) as p
    where 0 = (select count(*) from (
      select from refunds as r where ${tx.unsafe(REFUND)} limit 1) as stored)`
  return count > 0
}

const OPEN = `(select count(*)::int from (
    select from refunds as r
    where ${isUnendedSql('r')} and ${byKey('r', ['merchant_code', 'payment_id'], 'payments')}
    limit ${MAX_OPEN}) as own)`

/** The currency that verified notifications agree on, including a deleted one that named the transaction's order. */
const CURRENCY = `(
    select case when count(distinct upper(btrim(e.currency))) = 1 and (not t.order_verified
        or max(upper(btrim(e.currency))) = upper(btrim(coalesce(t.currency, max(e.currency)))))
      then max(upper(btrim(e.currency))) filter (where upper(btrim(e.currency)) ~ '^[A-Z]{3}$') end
    from (
      select * from ipn_events as e where ${byKey('e', ['merchant_code', 'transaction_id'], 't')} offset 0) as e
    where e.verdict = 'verified' and e.reading = 1)`

/** The currency that caller and approver see, whatever named it. Where notifications disagree they see that, too. */
const REQUESTED_CURRENCY = `(
    select nullif(upper(btrim(t.currency)), '') where not exists (
      select from (
        select * from ipn_events as e where ${byKey('e', ['merchant_code', 'transaction_id'], 't')} offset 0) as e
      where e.verdict = 'verified' and e.reading = 1 and upper(btrim(e.currency)) <> upper(btrim(t.currency))))`

/** Refunds in parts, or of several payments of one transaction, are no way below the approval's threshold. */
const OWN_TOTAL = `(
    select coalesce(sum(r.amount), 0) from (
      select amount, status from refunds as r
      where ${byKey('r', ['merchant_code', 'transaction_id'], 't')} offset 0) as r
    where r.status <> 'failed')`

type PaymentFacts = Pick<RequestFacts, 'now' | 'transactionId'> &
  RequestFacts['payment'] &
  OrderFacts

/** Reads the time after the wait for the locks: refunds are dated in the order in which they were judged. */
async function readPayment(tx: Tx, key: RequestKey): Promise<PaymentFacts[]> {
  return await tx<PaymentFacts[]>`
    select t.transaction_id as "transactionId", clock_timestamp()::text as now, payments.status, missing, unreadable, payment_method as "paymentMethod",
      payments.hold ->> 'reason' as held, (
        select m.hold ->> 'reason' from merchant_accounts as m where m.merchant_code = k.merchant_code
      ) as "accountHeld", ${tx.unsafe(REFUNDABLE_SQL)} as refundable, ${tx.unsafe(OPEN)} as open,
      ${tx.unsafe(transactionVersionSql('t'))} as version, t.want, ${tx.unsafe(CURRENCY)} as "verifiedCurrency",
      ${tx.unsafe(REQUESTED_CURRENCY)} as "requestedCurrency", ${tx.unsafe(OWN_TOTAL)} as "ownTotal", t.currency, t.order_id as "orderId", t.merchant_txn_id as "merchantTxnId"
    from ${selectKey(tx, key)} cross join lateral (
      select * from payments as p where ${tx.unsafe(PAYMENT)} limit 1
    ) as payments cross join lateral (
      select * from transactions as t where ${tx.unsafe(transactionOf('payments'))} limit 1
    ) as t`
}

const UNCONTRADICTED = `f.failure_notified_at is null
  and (f.outcome is null or f.outcome not in ('released', 'never_happened'))`

/**
 * Reads the verified notifications of a request id and its external refunds, which are kept for longer, in the order
 * of notification. There are some before the refund is stored only if its row was lost.
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
        select * from ipn_events as e where e.kind = 'refund' and ${tx.unsafe(BY_REQUEST_ID)} offset 0) as e
      where e.verdict = 'verified'
      union all
      select f.ipn_event_id, f.payment_id, f.amount, f.notified_at, null, 1, f.id, ${tx.unsafe(UNCONTRADICTED)},
        f.matched, f.outcome
      from k cross join lateral (
        select * from external_refunds as f
        where ${tx.unsafe(byKey('f', ['merchant_code', 'request_id'], 'k'))} offset 0) as f
    ) as evidence order by "notifiedAt", "ipnEventId"`
}

/** A person who is named by e-mail address or id is stored by name, because whoever decides is compared with that. */
async function foldPerson(tx: Tx, text: string): Promise<string> {
  const folded = foldName(text)
  const [person] = await tx<{ folded: string }[]>`
    select folded_person as folded from actors
    where kind = 'person' and (folded_email = ${folded} or id::text = ${folded})
    order by ended_at is not null, created_at desc limit 1`
  return person?.folded ?? folded
}

/** A refund whose success was inferred from growth. Its amount stays reserved until the success is known. */
export type InferredRefund = { refundId: string; amount: string }

/** Finds the oldest one, which a person can confirm so that more is left. The payments are locked. */
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

/** For `expectedVersion`. It names the transaction, so that a payment that moves has another. */
export function formatTransactionVersion(transaction: {
  transactionId: string
  version: number
}): string {
  return `${transaction.transactionId}@${transaction.version}`
}

/** `formatTransactionVersion` in SQL, for a row of `transactions`. */
export function transactionVersionSql(alias: string): string {
  return `${alias}.transaction_id || '@' || ${alias}.version`
}
