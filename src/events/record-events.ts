import { EVENT_RECORDED } from '../db/channels.ts'
import { notifyAfterCommit } from '../platform/postgres/notify.ts'
import type { Tx } from '../platform/postgres/types.ts'
import type { EventType } from './event.ts'

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
  if (events.length === 0) return
  await tx`
    insert into event_outbox (merchant_code, transaction_id, type, data)
    select e ->> 'merchantCode', e ->> 'transactionId', e ->> 'type', e -> 'data'
    from json_array_elements(${JSON.stringify(events)}::json) with ordinality as es (e, place)
    order by place`
  notifyAfterCommit(tx, EVENT_RECORDED)
}
