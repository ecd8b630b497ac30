import type { Config } from '../../config/config.ts'
import { byKey } from '../../platform/postgres/by-key.ts'
import type { Tx } from '../../platform/postgres/types.ts'

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
