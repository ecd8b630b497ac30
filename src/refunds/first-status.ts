import type { Config } from '../config/config.ts'
import type { TransactionKey } from '../db/transaction-key.ts'
import type { NewEvent } from '../events/record-events.ts'
import { byExpressions, byKey } from '../platform/postgres/by-key.ts'
import type { Tx } from '../platform/postgres/types.ts'
import { buildExternalEvents, readExternalRefunds, recordExternalChanges } from './events.ts'
import type { ExternalState } from './external-view.ts'
import type { ExternalChange } from './types.ts'

type Target = { merchantCode: string; transactionId: string }

/**
 * Builds common table expressions that follow `asked`: `verified`, one row with the currency of the transaction as
 * verified notifications name it (null without one, with several, or where nothing depends on it), and `wanted`, which
 * adds the status that the refund starts with (`next`). One of which something is known already ends, or goes to a
 * person; one above the threshold of its currency awaits approval.
 * @param needsCurrency whether more than a threshold depends on the currency
 */
export function selectStatus(
  tx: Tx,
  config: Pick<Config, 'REFUND_APPROVAL_ABOVE'>,
  target: Target,
  needsCurrency: boolean,
) {
  const { REFUND_APPROVAL_ABOVE: thresholds } = config
  return tx`
    verified as (${needsCurrency || thresholds.length > 0 ? selectCurrency(tx, target) : tx`select null::text as currency`}),
    wanted as (
      select asked.*, case
        when found then case when proves then 'succeeded' else 'needs_review' end
        when ${exceedsThreshold(tx, config, target)} then 'awaiting_approval'
        else 'pending' end as next
      from asked
    )`
}

/** The currency of the transaction, if verified notifications name one and only one, in any case. */
function selectCurrency(tx: Tx, { merchantCode, transactionId }: Target) {
  return tx`
    select case when count(distinct upper(btrim(e.currency))) = 1
      then max(upper(btrim(e.currency))) filter (where upper(btrim(e.currency)) ~ '^[A-Z]{3}$') end as currency
    from (select ${merchantCode}::text as merchant_code, ${transactionId}::text as transaction_id) as k
    cross join lateral (
      select * from ipn_events as e
      where ${tx.unsafe(byKey('e', ['merchant_code', 'transaction_id'], 'k'))} offset 0) as e
    where e.verdict = 'verified' and e.reading = 1`
}

/**
 * Whether the refund needs the approval of a second person: together with the transaction's own refunds that have not
 * failed it is above the threshold. A currency without a threshold, or none that is verified, needs it for any amount:
 * what nobody thought of when the setting was written is not waved through.
 */
function exceedsThreshold(
  tx: Tx,
  { REFUND_APPROVAL_ABOVE: thresholds }: Pick<Config, 'REFUND_APPROVAL_ABOVE'>,
  target: Target,
) {
  if (thresholds.length === 0) return tx`false`
  return tx`coalesce(amount + ${selectOwnTotal(tx, target)} > (
    select a.amount
    from verified, json_to_recordset(${JSON.stringify(thresholds)}::json) as a (currency text, amount numeric)
    where a.currency = verified.currency), true)`
}

/**
 * The amounts of the transaction's own refunds that have not failed, which count together with the new one: parts of a
 * payment, or several payments of one transaction, are no way below the threshold.
 */
function selectOwnTotal(tx: Tx, { merchantCode, transactionId }: Target) {
  return tx`(
    select coalesce(sum(r.amount), 0)
    from (select ${merchantCode}::text as merchant_code, ${transactionId}::text as transaction_id) as k cross join lateral (
      select amount, status from refunds as r
      where ${tx.unsafe(byKey('r', ['merchant_code', 'transaction_id'], 'k'))} offset 0) as r
    where r.status <> 'failed')`
}

type Request = {
  merchantCode: string
  paymentId: string
  /** In lower case, as the gateway may spell it otherwise. */
  refundId: string
  /** Decimal string; null for all that is left to refund. */
  amount: string | null
}

const NOTIFIED = byExpressions(
  ['e.merchant_code', 'lower(e.request_id)'],
  ['k.merchant_code', 'k.request_id'],
)

/**
 * An external refund whose success nothing contradicts: no failure was notified, no other reading of its notification
 * was matched, and no person decided that it never happened.
 */
const UNCONTRADICTED = `f.failure_notified_at is null
  and (f.outcome is null or f.outcome not in ('released', 'never_happened'))`

/**
 * Builds common table expressions that look up what is known of a request id before its refund is stored. Only a
 * row that was lost can have been sent before:
 *
 * - `notified`: its verified notifications;
 * - `external`: its external refunds, which are kept for longer, and store a UUID in lower case;
 * - `evidence`: both;
 * - `judged`, one row: whether there is any evidence (`found`), whether all of it is one uncontradicted success of this
 *   payment and amount (`proves`), and its content.
 *
 * The caller holds the payment's row.
 */
export function selectPriorEvidence(
  tx: Tx,
  { merchantCode, paymentId, refundId, amount }: Request,
) {
  const key = tx`(select ${merchantCode}::text as merchant_code, ${refundId}::text as request_id) as k`
  return tx`
    notified as (
      select e.id, e.request_id, e.payment_id, e.amount, e.code, e.first_received_at, e.reading
      from ${key} cross join lateral (
        select * from ipn_events as e where e.kind = 'refund' and ${tx.unsafe(NOTIFIED)} offset 0) as e
      where e.verdict = 'verified'
    ), external as (
      select f.*, ${tx.unsafe(UNCONTRADICTED)} as uncontradicted
      from ${key} cross join lateral (
        select * from foreign_refunds as f
        where ${tx.unsafe(byKey('f', ['merchant_code', 'request_id'], 'k'))} offset 0) as f
    ), evidence as (
      select id as ipn_event_id, payment_id, amount, coalesce(code = '0', false) and reading = 1 as succeeded,
        first_received_at as notified_at, false as matched, null as outcome
      from notified
      union all
      select ipn_event_id, payment_id, amount, uncontradicted, notified_at, matched, outcome from external
    ), judged as (
      select count(*) > 0 as found,
        count(*) > 0 and count(distinct amount) = 1 and (select count(*) <= 1 from external)
          and bool_and(coalesce(payment_id = ${paymentId} and succeeded
            and amount = coalesce(${amount}::numeric, amount), false)) as proves,
        max(amount) filter (where payment_id = ${paymentId} and amount > 0) as amount,
        max(ipn_event_id) as ipn_event_id, min(notified_at) as notified_at,
        coalesce(bool_or(matched), false) as matched,
        coalesce(bool_or(outcome = 'part_of_first_sight'), false) as in_first_sight
      from evidence
    )`
}

/** An external refund that turned out to be a refund of ours whose row was lost, and its state until then. */
export type TakenExternal = { externalId: string; before: ExternalState }

/**
 * Records that a refund takes the place of an external refund.
 * @returns the event to record as the last statement of the unit of work; empty when there is none
 */
export async function recordTaken(
  tx: Tx,
  key: TransactionKey & { paymentId: string },
  refundId: string,
  taken: TakenExternal | null,
): Promise<NewEvent[]> {
  if (!taken) return []
  const { merchantCode, paymentId } = key
  const reason = `it is refund ${refundId}, whose row was lost and is stored again`
  const changes: ExternalChange[] = [{ ...taken, paymentId, after: 'own', cause: { reason } }]
  await recordExternalChanges(tx, key, changes)
  const found = await readExternalRefunds(tx, merchantCode, [taken.externalId])
  return buildExternalEvents(found, changes)
}
