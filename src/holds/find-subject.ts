import type { TransactionKey } from '../db/transaction-key.ts'
import { DomainError, type RefusalCode } from '../errors.ts'
import { Id, isUuid } from '../http/fields.ts'
import type { StoredHold } from '../payments/view.ts'
import { byKey } from '../platform/postgres/by-key.ts'
import type { Sql } from '../platform/postgres/types.ts'

/** A hold that is set, as of its last change. */
export type ListedHold = {
  merchantCode: string
  target: HoldTarget
  id: string
  reason: string
  by: string
  at: string
}

/** Lists the holds that are set, the oldest first. */
export async function listHolds(sql: Sql): Promise<ListedHold[]> {
  const rows = await sql<ListedHold[]>`
    select merchant_code as "merchantCode", target, target_id as id, reason, actor as by, at::text as at
    from (
      select distinct on (merchant_code, target, target_id) * from hold_changes
      order by merchant_code, target, target_id, id desc
    ) as latest
    where held order by latest.id`
  return [...rows]
}

/** Reads the hold of a merchant account; null when it is not held, or unknown. */
export async function readAccountHold(sql: Sql, merchantCode: string): Promise<StoredHold> {
  const [row] = await sql<{ hold: StoredHold }[]>`
    select hold from merchant_accounts where merchant_code = ${merchantCode}`
  return row?.hold ?? null
}

export const HOLD_TARGETS = ['merchant', 'payment', 'refund'] as const

/** What can be held: an account, a payment with all its refunds, or a single refund. */
export type HoldTarget = (typeof HOLD_TARGETS)[number]

/** An existing object that can be held. */
export type HoldSubject = { merchantCode: string; id: string } & (
  | { target: 'merchant' }
  | { target: 'payment' | 'refund'; transaction: TransactionKey; paymentId: string }
)

const UNKNOWN = {
  merchant: 'merchant_not_found',
  payment: 'payment_not_found',
  refund: 'refund_not_found',
} as const satisfies Record<HoldTarget, RefusalCode>

/**
 * Finds what is to be held or released.
 * @param merchants the accounts the caller may act for
 * @param id unvalidated text from the request
 * @throws DomainError `merchant_not_found`, `payment_not_found`, `refund_not_found`, or `ambiguous_merchant` when
 *   several accounts have the id
 */
export async function findSubject(
  sql: Sql,
  merchants: readonly string[],
  target: HoldTarget,
  id: string,
): Promise<HoldSubject> {
  const found = await selectSubjects(sql, merchants, target, id)
  const [first, second] = found
  if (!first) throw new DomainError(UNKNOWN[target], `No ${target} ${id}`)
  if (second) {
    const detail = `Several merchant accounts have a ${target} with this id: name one with ?merchantCode=`
    throw new DomainError('ambiguous_merchant', detail)
  }
  return first
}

type Row = { merchantCode: string; transactionId: string; paymentId: string }

async function selectSubjects(
  sql: Sql,
  merchants: readonly string[],
  target: HoldTarget,
  id: string,
): Promise<HoldSubject[]> {
  if (target === 'merchant') {
    return merchants.includes(id) ? [{ target, merchantCode: id, id }] : []
  }
  if (target === 'refund' ? !isUuid(id) : !Id.safeParse(id).success) return []
  const { table, column, type } = TABLES[target]
  const rows = await sql<Row[]>`
    select o.merchant_code as "merchantCode", o.transaction_id as "transactionId", o.payment_id as "paymentId"
    from (
      select merchant_code, ${id}::${sql.unsafe(type)} as ${sql(column)}
      from json_array_elements_text(${JSON.stringify(merchants)}::json) as merchant_code
    ) as k cross join lateral (
      select merchant_code, transaction_id, payment_id from ${sql(table)} as o
      where ${sql.unsafe(byKey('o', ['merchant_code', column], 'k'))} limit 1) as o`
  return rows.map(({ merchantCode, transactionId, paymentId }) => {
    const transaction = { merchantCode, transactionId }
    return {
      target,
      merchantCode,
      id: target === 'payment' ? id : id.toLowerCase(),
      transaction,
      paymentId,
    }
  })
}

const TABLES = {
  payment: { table: 'payments', column: 'payment_id', type: 'text' },
  refund: { table: 'refunds', column: 'refund_id', type: 'uuid' },
} as const
