import { describeActor, recordWrite } from '../access/audit.ts'
import type { Access } from '../access/types.ts'
import type { Context } from '../context.ts'
import { ORDER_ID_COLUMNS } from '../db/order-facts.ts'
import { discrepancies } from '../db/schema.ts'
import { buildDiscrepancyUpdate } from '../discrepancies/record-discrepancies.ts'
import type { DiscrepancyRow } from '../discrepancies/types.ts'
import { DomainError } from '../errors.ts'
import { type NewEvent, recordChanges, recordEvents } from '../events/record-events.ts'
import { byKey } from '../platform/postgres/by-key.ts'
import { listColumns, toIso } from '../platform/postgres/row-set.ts'
import { runInTransaction } from '../platform/postgres/transaction.ts'
import type { Sql, Tx } from '../platform/postgres/types.ts'

const COLUMNS = listColumns(discrepancies, 'd')

/**
 * Finds a discrepancy of one of the accounts.
 * @param merchants the accounts the caller may read
 * @param id unvalidated text from the request
 * @throws DomainError `discrepancy_not_found`
 */
export async function findDiscrepancy(
  sql: Sql | Tx,
  merchants: readonly string[],
  id: string,
): Promise<DiscrepancyRow> {
  const [found] = /^\d{1,18}$/.test(id)
    ? await sql<DiscrepancyRow[]>`
        select ${sql.unsafe(COLUMNS)}, ${sql.unsafe(ORDER_ID_COLUMNS)}
        from discrepancies as d left join lateral (
          select * from transactions as t
          where ${sql.unsafe(byKey('t', ['merchant_code', 'transaction_id'], 'd'))} limit 1) as t on true
        where d.id = ${id} and d.merchant_code = any(${[...merchants]}::text[])`
    : []
  if (!found) throw new DomainError('discrepancy_not_found', `No discrepancy ${id}`)
  return found
}

/** A change of a discrepancy, for the timeline. */
export type DiscrepancyStep = {
  field: 'discrepancy' | 'discrepancy_note' | 'discrepancy_assignee'
  before: string | null
  after: string | null
  /** What was done, without the key that did it. */
  verb: string
  /** What else is to be said of whoever did it. */
  also?: string
  reason: string
  /** What else happened, in order. */
  events?: readonly NewEvent[]
}

/**
 * Changes a discrepancy, in one unit of work with its entry in the timeline, the audit entry and the event.
 * @param write changes the row, locked after its transaction; undefined if its state forbids that
 * @returns the discrepancy as it is now
 * @throws DomainError `discrepancy_resolved`, with what was decided
 */
export async function changeDiscrepancy(
  { sql, log }: Pick<Context, 'sql' | 'log'>,
  access: Access,
  { merchantCode, transactionId, id }: DiscrepancyRow,
  operation: string,
  write: (tx: Tx, row: DiscrepancyRow) => Promise<DiscrepancyStep | undefined>,
): Promise<DiscrepancyRow> {
  return await runInTransaction(sql, async (tx) => {
    await tx`
      select from transactions
      where merchant_code = ${merchantCode} and transaction_id = ${transactionId} for update`
    const before = await findDiscrepancy(tx, [merchantCode], String(id))
    const step = await write(tx, before)
    if (!step) throw new DomainError('discrepancy_resolved', describeResolution(before))
    const after = await findDiscrepancy(tx, [merchantCode], String(id))
    const { paymentId, refundId, kind } = after
    const { verb, also = '', reason, events = [], ...change } = step
    const cause = `discrepancy ${id} (${kind}) ${verb} ${describeActor(access)}${also}: ${reason}`
    await recordChanges(tx, [
      { merchantCode, transactionId, paymentId, refundId, ...change, cause },
    ])
    await recordWrite(tx, log, access, { operation, merchantCode, objectId: String(id) })
    await recordEvents(tx, [...events, buildDiscrepancyUpdate(after)])
    return after
  })
}

function describeResolution({ id, resolvedAt, resolvedBy, resolution }: DiscrepancyRow): string {
  const how =
    resolvedBy === null
      ? `The two sides of discrepancy ${id} have agreed again since ${toIso(resolvedAt)}`
      : `Discrepancy ${id} was resolved by ${resolvedBy} at ${toIso(resolvedAt)}: ${resolution}`
  return `${how}. You can still add a note with POST /v1/discrepancies/${id}/note`
}
