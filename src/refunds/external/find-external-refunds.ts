import type { Context } from '../../context.ts'
import { ORDER_COLUMNS } from '../../db/order-facts.ts'
import { externalRefunds } from '../../db/schema.ts'
import { DomainError } from '../../errors.ts'
import { isUuid } from '../../platform/http/fields.ts'
import type { Position } from '../../platform/http/page.ts'
import { listColumns } from '../../platform/postgres/columns.ts'
import type { ExternalRecord } from '../external-view.ts'

const COLUMNS = listColumns(externalRefunds, 'f')

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
