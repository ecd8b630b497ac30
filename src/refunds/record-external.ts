import { and, eq, inArray, sql } from 'drizzle-orm'
import { externalRefunds } from '../db/schema.ts'
import type { TransactionKey } from '../db/transaction-key.ts'
import { compareAmounts } from '../money.ts'
import { build } from '../platform/postgres/drizzle.ts'
import type { Tx } from '../platform/postgres/types.ts'
import type { RefundNotification } from './case.ts'
import { deriveExternalState } from './external-view.ts'
import type { ExternalChange, ExternalRefund, Finding, LockedPayment } from './types.ts'

export type ExternalEnd = { matched: true } | { outcome: 'part_of_first_sight' }

/**
 * Marks external refunds of a payment as matched to growth, or as part of what was refunded at first.
 * @returns the changed states
 */
export async function markExternalRefunds(
  tx: Tx,
  { merchantCode }: TransactionKey,
  paymentId: string,
  marked: readonly ExternalRefund[],
  end: ExternalEnd,
  callId: number,
): Promise<ExternalChange[]> {
  if (marked.length === 0) return []
  const rows = JSON.stringify(marked.map(({ id, amount }) => ({ id, amount })))
  const rowsMarked = await build(tx)
    .update(externalRefunds)
    .set(end)
    .where(
      and(
        eq(externalRefunds.merchantCode, merchantCode),
        eq(externalRefunds.paymentId, paymentId),
        sql`(${externalRefunds.requestId}, ${externalRefunds.amount}) in
          (select id, amount
            from json_to_recordset(${sql.param(rows)}::json) as m (id text, amount numeric))`,
      ),
    )
    .returning({
      externalId: externalRefunds.id,
      requestId: externalRefunds.requestId,
      amount: externalRefunds.amount,
    })
  const after = 'outcome' in end ? end.outcome : 'matched'
  const shown = 'outcome' in end ? 'when the payment was first seen' : 'now'
  return rowsMarked.map(({ externalId, requestId, amount }) => {
    const reason = `the refunded amount shows ${shown} the refund of ${amount} made elsewhere (request ${requestId})`
    return { externalId, paymentId, before: 'reserved', after, cause: { reason, callId } }
  })
}

/**
 * Releases the external refunds of a payment of which growth has shown another reading of the same signed text. Each
 * transaction does that for its own, so that a change is recorded with its payment.
 * @returns the changed states
 */
export async function releaseOtherReadings(
  tx: Tx,
  { merchantCode }: TransactionKey,
  { paymentId, external }: Pick<LockedPayment, 'paymentId' | 'external'>,
): Promise<ExternalChange[]> {
  const others = external.filter(({ isOtherReading }) => isOtherReading)
  if (others.length === 0) return []
  const ids = others.map(({ externalId }) => externalId)
  await build(tx)
    .update(externalRefunds)
    .set({ outcome: 'released' })
    .where(and(eq(externalRefunds.merchantCode, merchantCode), inArray(externalRefunds.id, ids)))
  return others.map(({ externalId, id }) => {
    const reason = `another reading of its notification was matched (request ${id})`
    return { externalId, paymentId, before: 'reserved', after: 'released', cause: { reason } }
  })
}

type Outcome = 'part_of_first_sight' | 'released' | 'never_happened' | 'own'

/** What a notification makes of the external refund that it names. */
export type RecordedExternal = { changes: ExternalChange[]; findings: Finding[] }

const NOTHING: RecordedExternal = { changes: [], findings: [] }

/**
 * Records a verified success as an external refund, which is reserved until growth shows it or a person decides. A
 * failure of the same refund, in whatever order, contradicts it: it stays as it is, and a person decides. What a person
 * decided never to have happened stays so.
 */
export async function recordExternal(
  tx: Tx,
  key: TransactionKey,
  notification: RefundNotification,
  result: 'success' | 'failure' | undefined,
): Promise<RecordedExternal> {
  const one = { ...notification, requestId: foldUuid(notification.requestId) }
  const { paymentId, amount } = one
  // Of two readings nobody can say which one is right: both are reserved, until growth shows one.
  if (!one.documented) return NOTHING
  if (!one.verified || result === undefined || paymentId === null || amount === null) return NOTHING
  if (compareAmounts(amount, '0') === 0) return NOTHING
  if (result === 'failure')
    return one.reading > 1 ? NOTHING : await contradict(tx, key, one, paymentId)
  return await reserve(tx, key, one, paymentId)
}

const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i

/** A UUID is the same in any case; of other request ids that is not known. */
function foldUuid(requestId: string): string {
  return UUID.test(requestId) ? requestId.toLowerCase() : requestId
}

async function contradict(
  tx: Tx,
  { merchantCode }: TransactionKey,
  one: RefundNotification,
  paymentId: string,
): Promise<RecordedExternal> {
  const rows = await tx`
    update foreign_refunds set failure_notified_at = ${one.receivedAt}
    where merchant_code = ${merchantCode} and request_id = ${one.requestId} and payment_id = ${paymentId}
      and amount = ${one.amount} and failure_notified_at is null
      and (outcome is null or outcome = 'part_of_first_sight')
    returning id`
  return { changes: [], findings: rows.map(() => describeContradiction(one, paymentId)) }
}

type Reserved = {
  externalId: string
  /** Null when there was no row. */
  matched: boolean | null
  outcome: Outcome | null
  contradicted: boolean
}

async function reserve(
  tx: Tx,
  { merchantCode, transactionId }: TransactionKey,
  one: RefundNotification,
  paymentId: string,
): Promise<RecordedExternal> {
  const { id, requestId, amount, receivedAt } = one
  const rows = await tx<Reserved[]>`
    with old as (
      select matched, outcome from foreign_refunds
      where merchant_code = ${merchantCode} and request_id = ${requestId} and payment_id = ${paymentId}
        and amount = ${amount}
    ), stored as (
      insert into foreign_refunds as f
        (merchant_code, request_id, payment_id, amount, ipn_event_id, notified_at, failure_notified_at)
      select merchant_code, ${requestId}, payment_id, ${amount}, ${id}, ${receivedAt}, (
        ${selectFailure(tx, merchantCode, one)}
      ) from payments
      where merchant_code = ${merchantCode} and payment_id = ${paymentId}
        and transaction_id = ${transactionId}
      on conflict (merchant_code, request_id, payment_id, amount) do update
        set outcome = null, matched = false, ipn_event_id = excluded.ipn_event_id
      where f.outcome = 'released'
      returning id, failure_notified_at is not null as contradicted
    )
    select stored.id as "externalId", old.matched, old.outcome, stored.contradicted
    from stored left join old on true`
  if (rows.length === 0) return await describeKept(tx, merchantCode, one, paymentId)
  return {
    changes: rows.map((row) => describeReserved(one, paymentId, row)),
    findings: rows
      .filter(({ contradicted }) => contradicted)
      .map(() => describeContradiction(one, paymentId)),
  }
}

/** When the failure of the same refund was notified first; null when it was not. */
function selectFailure(
  tx: Tx,
  merchantCode: string,
  { requestId, paymentId, amount }: RefundNotification,
) {
  return tx`
    select min(e.first_received_at) from ipn_events e
    where e.merchant_code = ${merchantCode} and e.kind = 'refund' and e.verdict = 'verified' and e.reading = 1
      and lower(e.request_id) = ${requestId.toLowerCase()}
      and (e.request_id = ${requestId} or ${UUID.test(requestId)})
      and e.payment_id = ${paymentId} and e.amount = ${amount}
      and e.code ~ '^-?[1-9][0-9]{0,8}$' and e.code not in ('9', '99')`
}

/** What is known already changes nothing; what a person decided never to have happened is a discrepancy. */
async function describeKept(
  tx: Tx,
  merchantCode: string,
  { requestId, amount }: RefundNotification,
  paymentId: string,
): Promise<RecordedExternal> {
  const decided = await tx<{ by: string | null }[]>`
    select resolution ->> 'by' as by from foreign_refunds
    where merchant_code = ${merchantCode} and request_id = ${requestId} and payment_id = ${paymentId}
      and amount = ${amount} and outcome = 'never_happened'`
  const findings = decided.map(({ by }): Finding => {
    const ours = `${nameExternal(requestId, amount)} decided as never_happened by ${by}`
    const kind = 'decided_against_evidence'
    return { kind, ours, theirs: 'another notification of its success', paymentId }
  })
  return { changes: [], findings }
}

function describeReserved(
  { id, requestId, amount }: RefundNotification,
  paymentId: string,
  { externalId, matched, outcome }: Reserved,
): ExternalChange {
  const reason = `the gateway notified a refund of ${amount} made elsewhere (request ${requestId})`
  const before = matched === null ? null : deriveExternalState({ matched, outcome })
  return { externalId, paymentId, before, after: 'reserved', cause: { reason, ipnEventId: id } }
}

function describeContradiction(
  { requestId, amount }: RefundNotification,
  paymentId: string,
): Finding {
  const ours = nameExternal(requestId, amount)
  const theirs = 'its success and its failure were both notified'
  return { kind: 'external_refund_contradicted', ours, theirs, paymentId }
}

/** Names an external refund in its discrepancies. */
export function nameExternal(requestId: string, amount: string | null): string {
  return `external refund ${requestId} of ${amount}`
}
