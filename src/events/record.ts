import type { Tx } from '../db/client.ts'
import type { EventType } from './event.ts'

/** Wakes who publishes; polling is the net under it. */
export const EVENT_RECORDED = 'event_recorded'

/** Something that happened, with the object as it stands then, shaped as its route answers. */
export type NewEvent = {
  merchantCode: string
  transactionId: string
  type: EventType
  data: object
}

/**
 * Writes what happened in the commit that brought it, as its last statement: what it tells is what the
 * commit leaves. The caller holds the transactions' rows, so the events of each are in its order.
 */
export async function recordEvents(tx: Tx, events: readonly NewEvent[]): Promise<void> {
  if (events.length === 0) return
  await tx`
    with recorded as (
      insert into event_outbox (merchant_code, transaction_id, type, data)
      select e ->> 'merchantCode', e ->> 'transactionId', e ->> 'type', e -> 'data'
      from json_array_elements(${JSON.stringify(events)}::json) with ordinality as es (e, place)
      order by place
    )
    select pg_notify(${EVENT_RECORDED}, '')`
}
