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

export type ChangeRow = Pick<typeof changes.$inferInsert, keyof typeof COLUMNS>

export async function recordChanges(tx: Tx, rows: readonly ChangeRow[]): Promise<void> {
  if (rows.length > 0) await prepareChanges(tx, rows)
}

/** Builds the statement of `recordChanges`, for a unit of work that sends it with its commit. */
export function prepareChanges(tx: Tx, rows: readonly ChangeRow[]) {
  return tx`${insertRows(tx, changes, COLUMNS, rows)}`
}

/** `data` is the object after the change, in the form that its own route returns. */
export type NewEvent = {
  merchantCode: string
  transactionId: string
  type: EventType
  data: object
}

/**
 * Records events as the last statement of the transaction that causes them, so that they show what it commits. The
 * caller has locked the payment transactions concerned, so the events of each are in order.
 */
export async function recordEvents(tx: Tx, events: readonly NewEvent[]): Promise<void> {
  await prepareRecording(tx, events)?.()
}

/** Builds the statement of `recordEvents`, for a caller that sends it with the commit; undefined without events. */
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
