import { Big } from 'big.js'
import { byKey } from '../platform/postgres/by-key.ts'

/** The inputs of a payment's refundable balance. Amounts are decimal strings. */
export type BalanceFacts = {
  amount: string
  /** The payment's refunded amount that counts, and what it was when the payment was first seen. */
  refundedNow: string
  refundedAtFirst: string
  /** Amounts of refunds, own and external, that were matched to the growth between the two. */
  matched: readonly string[]
  /**
   * Amounts of unmatched refunds: own refunds that have not failed, whose money may still move, and external
   * refunds known from a notification, whose money has moved although the gateway's ledger lags behind.
   */
  reserved: readonly string[]
}

/**
 * Computes how much of a payment can still be refunded: its amount, less what the gateway reports as refunded
 * (or what refunds already explain, if that is more, because a ledger may lag), less what is reserved.
 * @returns a decimal string, never negative
 */
export function computeRefundable(facts: BalanceFacts): string {
  const explained = sum([facts.refundedAtFirst, ...facts.matched])
  const gone = explained.gt(facts.refundedNow) ? explained : new Big(facts.refundedNow)
  const rest = new Big(facts.amount).minus(gone).minus(sum(facts.reserved))
  return rest.lt(0) ? '0' : rest.toFixed()
}

/**
 * The same formula in SQL, for statements that read `payments` without an alias. Under concurrency it is
 * correct only in a statement that starts after the payment's row was locked. `foreign_refunds` holds the
 * external refunds. A refund that is part of the first sight is in neither sum, nor is one that came back once two
 * answers have shown it (`return_sightings`). While an amount that changed is not confirmed, the lower one counts; of
 * refunded amounts, the higher one.
 */
export const REFUNDABLE_SQL = `greatest(0, least(payments.amount, payments.counted_amount)
  - greatest(payments.refunded_amount, payments.counted_refunded, payments.refunded_at_first
    + ${sumOf('refunds', 'r.matched and not r.in_first_sight')}
    + ${sumOf('foreign_refunds', 'r.matched and r.outcome is null')})
  - ${sumOf('refunds', "not r.matched and not r.in_first_sight and r.status <> 'failed' and r.return_sightings < 2")}
  - ${sumOf('foreign_refunds', 'not r.matched and r.outcome is null')})`

function sumOf(table: string, condition: string): string {
  return `(select coalesce(sum(amount), 0) from (
      select r.amount from ${table} r
      where ${condition} and ${byKey('r', ['merchant_code', 'payment_id'], 'payments')} offset 0) as own)`
}

function sum(amounts: readonly string[]): Big {
  return amounts.reduce((total, amount) => total.plus(amount), new Big(0))
}
