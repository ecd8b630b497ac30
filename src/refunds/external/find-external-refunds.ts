import type { Context } from '../../context.ts'
import { ORDER_COLUMNS } from '../../db/order-facts.ts'
import { externalRefunds } from '../../db/schema.ts'
import type { TransactionKey } from '../../db/transaction-key.ts'
import { DomainError } from '../../errors.ts'
import { isUuid } from '../../http/fields.ts'
import type { Position } from '../../http/list.ts'
import { byKey } from '../../platform/postgres/by-key.ts'
import { listColumns } from '../../platform/postgres/row-set.ts'
import type { ExternalRecord } from '../external-view.ts'

const COLUMNS = listColumns(externalRefunds, 'f')

const OF_TRANSACTION = ['merchant_code', 'transaction_id']

const WITH_TRANSACTION = `
  from foreign_refunds f
    join payments p on p.merchant_code = f.merchant_code and p.payment_id = f.payment_id
    join transactions t on t.merchant_code = p.merchant_code and t.transaction_id = p.transaction_id`

/**
 * Lists the external refunds of a payment, newest first.
 * @returns more than `limit` if there is a next page
 */
export async function listExternalRefunds(
  { sql }: Pick<Context, 'sql'>,
  { merchantCode, paymentId }: { merchantCode: string; paymentId: string },
  limit: number,
  after: Position | undefined,
): Promise<ExternalRecord[]> {
  return await sql<ExternalRecord[]>`
    select ${sql.unsafe(COLUMNS)}, p.transaction_id as "transactionId", ${sql.unsafe(ORDER_COLUMNS)}
    ${sql.unsafe(WITH_TRANSACTION)}
    where f.merchant_code = ${merchantCode} and f.payment_id = ${paymentId}
      and ${
        after
          ? sql`(f.first_seen_at, f.id) < (${after.time}::timestamptz, ${after.id}::uuid)`
          : sql`true`
      }
    order by f.first_seen_at desc, f.id desc limit ${limit + 1}`
}

/** Lists the external refunds of a transaction's payments, newest first, `limit` at most. */
export async function listExternalOfTransaction(
  { sql }: Pick<Context, 'sql'>,
  { merchantCode, transactionId }: TransactionKey,
  limit: number,
): Promise<ExternalRecord[]> {
  return await sql<ExternalRecord[]>`
    select ${sql.unsafe(COLUMNS)}, t.transaction_id as "transactionId", ${sql.unsafe(ORDER_COLUMNS)}
    from (
      select ${merchantCode}::text as merchant_code, ${transactionId}::text as transaction_id
    ) as k cross join lateral (
      select * from transactions as t where ${sql.unsafe(byKey('t', OF_TRANSACTION, 'k'))} limit 1
    ) as t cross join lateral (
      select merchant_code, payment_id from payments as p
      where ${sql.unsafe(byKey('p', OF_TRANSACTION, 'k'))} offset 0
    ) as p cross join lateral (
      select * from foreign_refunds as f
      where ${sql.unsafe(byKey('f', ['merchant_code', 'payment_id'], 'p'))} offset 0) as f
    order by f.first_seen_at desc, f.id desc limit ${limit}`
}

/**
 * Finds an external refund of one of the accounts.
 * @param merchants the accounts the caller may write for
 * @param id unvalidated text from the request
 * @throws DomainError `external_refund_not_found`
 */
export async function findExternalRefund(
  { sql }: Pick<Context, 'sql'>,
  merchants: readonly string[],
  id: string,
): Promise<ExternalRecord> {
  const [found] = isUuid(id)
    ? await sql<ExternalRecord[]>`
        select ${sql.unsafe(COLUMNS)}, p.transaction_id as "transactionId", ${sql.unsafe(ORDER_COLUMNS)}
        ${sql.unsafe(WITH_TRANSACTION)}
        where f.merchant_code = any(${[...merchants]}::text[]) and f.id = ${id}`
    : []
  if (!found) throw new DomainError('external_refund_not_found', `No external refund ${id}`)
  return found
}
