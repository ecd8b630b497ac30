import { EVENT_RECORDED } from '../db/names.ts'
import { changes } from '../db/schema.ts'
import { notifyAfterCommit } from '../platform/postgres/notify.ts'
import { insertRows, pickColumns } from '../platform/postgres/row-set.ts'
import type { LastStatement } from '../platform/postgres/transaction.ts'
import type { Tx } from '../platform/postgres/types.ts'
import type { EventType } from './event.ts'

const COLUMNS = {
  ...pickColumns(changes, 'merchantCode', 'transactionId', 'paymentId', 'refundId', 'field'),
  ...pickColumns(changes, 'before', 'after', 'callId', 'ipnEventId', 'cause'),
}

/** A row of `changes`: one field of a transaction, payment or refund, before and after. */
export type ChangeRow = Pick<typeof changes.$inferInsert, keyof typeof COLUMNS>

/** Records changes in the commit that makes them, in the order given. Sends no statement when there are none. */
export async function recordChanges(tx: Tx, rows: readonly ChangeRow[]): Promise<void> {
  if (rows.length > 0) await tx`${insertRows(tx, changes, COLUMNS, rows)}`
}

/** An event to record. `data` is the object after the change, shaped as its own route returns it. */
export type NewEvent = {
  merchantCode: string
  transactionId: string
  type: EventType
  data: object
}

/**
 * Records events in the transaction that caused them, as its last statement, so that they show what it
 * commits. The caller has locked the rows of the transactions, so the events of each are in order.
 */
export async function recordEvents(tx: Tx, events: readonly NewEvent[]): Promise<void> {
  await prepareRecording(tx, events)?.()
}

/**
 * Builds the statement of `recordEvents`, for a caller that sends it with the commit.
 * @returns undefined when there are no events
 */
export function prepareRecording(tx: Tx, events: readonly NewEvent[]): LastStatement | undefined {
  if (events.length === 0) return undefined
  const statement = tx`
    insert into event_outbox (merchant_code, transaction_id, type, data)
    select merchant_code, transaction_id, type, data
    from rows from (json_to_recordset(${JSON.stringify(events)}::json)
      as ("merchantCode" text, "transactionId" text, "type" text, "data" json)) with ordinality
      as e (merchant_code, transaction_id, type, data, place)
    order by place`
  notifyAfterCommit(tx, EVENT_RECORDED)
  return () => statement
}
