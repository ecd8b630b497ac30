import { ORDER_COLUMNS } from '../db/order-facts.ts'
import { externalRefunds } from '../db/schema.ts'
import type { NewEvent } from '../events/record-events.ts'
import { byKey } from '../platform/postgres/by-key.ts'
import { listColumns } from '../platform/postgres/row-set.ts'
import type { Tx } from '../platform/postgres/types.ts'
import { type ExternalRecord, showExternalRefund } from './external-view.ts'
import type { ExternalChange } from './types.ts'

const COLUMNS = listColumns(externalRefunds, 'f')

/** Reads external refunds within a unit of work, oldest first. Runs no query for an empty list. */
export async function readExternalRefunds(
  tx: Tx,
  merchantCode: string,
  ids: readonly string[],
): Promise<ExternalRecord[]> {
  if (ids.length === 0) return []
  return await tx<ExternalRecord[]>`
    select ${tx.unsafe(COLUMNS)}, p.transaction_id as "transactionId", ${tx.unsafe(ORDER_COLUMNS)}
    from foreign_refunds f
      join payments p on p.merchant_code = f.merchant_code and p.payment_id = f.payment_id
      join transactions t on t.merchant_code = p.merchant_code and t.transaction_id = p.transaction_id
    where f.merchant_code = ${merchantCode} and f.id = any(${ids}::uuid[])
    order by f.first_seen_at, f.id`
}

/** Lists the ids of the external refunds of payments. Runs no query for an empty list. */
export async function listExternalIds(
  tx: Tx,
  merchantCode: string,
  paymentIds: readonly string[],
): Promise<string[]> {
  if (paymentIds.length === 0) return []
  const rows = await tx<{ id: string }[]>`
    select f.id from (
      select ${merchantCode}::text as merchant_code, payment_id
      from unnest(${[...paymentIds]}::text[]) as payment_id
    ) as k cross join lateral (
      select * from foreign_refunds as f
      where ${tx.unsafe(byKey('f', ['merchant_code', 'payment_id'], 'k'))} offset 0) as f`
  return rows.map(({ id }) => id)
}

/**
 * Builds one event for each external refund that a commit found, changed or moved with its payment.
 * @param changed the external refunds as the commit leaves them
 */
export function buildExternalEvents(
  changed: readonly ExternalRecord[],
  changes: readonly ExternalChange[],
): NewEvent[] {
  return changed.map((one) => {
    const { merchantCode, transactionId } = one
    const isNew = changes.some(({ externalId, before }) => externalId === one.id && before === null)
    const type = isNew ? 'external_refund.found' : 'external_refund.updated'
    return { merchantCode, transactionId, type, data: showExternalRefund(one) }
  })
}
