import { Big } from 'big.js'

/** What the balance of a payment is made of; amounts are decimal strings. */
export type BalanceFacts = {
  amount: string
  /** `refundedAmount` in the newest snapshot, and when the payment was first seen. */
  refundedNow: string
  refundedAtFirst: string
  /** Refunds, ours and others', whose amounts were found in the growth between the two. */
  matched: readonly string[]
  /**
   * Refunds of ours that have not failed and are not matched: their money may still move. And others'
   * that a notification told of and that are not matched: their money has moved, and the ledger lags.
   */
  reserved: readonly string[]
}

/**
 * What may still be refunded: the amount, less what went back by the gateway's word (never less than
 * was explained before: a ledger may lag), less what is reserved. Never below zero.
 */
export function countRefundable(facts: BalanceFacts): string {
  const explained = sum([facts.refundedAtFirst, ...facts.matched])
  const gone = explained.gt(facts.refundedNow) ? explained : new Big(facts.refundedNow)
  const rest = new Big(facts.amount).minus(gone).minus(sum(facts.reserved))
  return rest.lt(0) ? '0' : rest.toFixed()
}

/**
 * The same in SQL, for any statement that has `payments` under its own name. Under concurrency it is
 * right only in a statement that begins after the payment's row was locked.
 */
export const REFUNDABLE_SQL = `greatest(0, payments.amount
  - greatest(payments.refunded_amount, payments.refunded_at_first
    + (select coalesce(sum(r.amount), 0) from refunds r
       where r.merchant_code = payments.merchant_code and r.payment_id = payments.payment_id and r.matched)
    + (select coalesce(sum(f.amount), 0) from foreign_refunds f
       where f.merchant_code = payments.merchant_code and f.payment_id = payments.payment_id and f.matched))
  - (select coalesce(sum(r.amount), 0) from refunds r
     where r.merchant_code = payments.merchant_code and r.payment_id = payments.payment_id
       and not r.matched and r.status <> 'failed')
  - (select coalesce(sum(f.amount), 0) from foreign_refunds f
     where f.merchant_code = payments.merchant_code and f.payment_id = payments.payment_id
       and not f.matched))`

function sum(amounts: readonly string[]): Big {
  return amounts.reduce((total, amount) => total.plus(amount), new Big(0))
}
