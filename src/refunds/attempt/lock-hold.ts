import { byKey } from '../../platform/postgres/by-key.ts'
import type { Tx } from '../../platform/postgres/types.ts'

/**
 * Locks the account's hold for a commit that may record an attempt, before any other lock. A hold that is being set
 * waits for such commits, and those that begin later see it. Commits do not block each other, nor the call rate's
 * update of the same row.
 */
export async function lockHold(tx: Tx, merchantCode: string): Promise<void> {
  await tx`select from merchant_accounts where merchant_code = ${merchantCode} for key share`
}

const PAYMENT = byKey('p', ['merchant_code', 'payment_id'], 'k')
const REFUND = byKey('r', ['merchant_code', 'refund_id'], 'k')

/**
 * The condition that neither the account, the payment nor the refund of `k` (`merchant_code`, `payment_id`,
 * `refund_id`) is held. It counts only in a statement that starts after `lockHold`.
 */
export const NOT_HELD_SQL = `(
    select m.hold from merchant_accounts as m where m.merchant_code = k.merchant_code) is null
  and (select p.hold from payments as p where ${PAYMENT} limit 1) is null
  and (select r.hold from refunds as r where ${REFUND} limit 1) is null`
