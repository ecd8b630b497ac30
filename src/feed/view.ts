import { z } from '@hono/zod-openapi'
import { Discrepancy } from '../discrepancies/routes.ts'
import { EVENT_TYPES, type EventType, isEventType } from '../events/event.ts'
import { Id, MerchantTxnId, OrderId, Time } from '../http/fields.ts'
import { Payment } from '../payments/view.ts'
import { ExternalRefund } from '../refunds/external-view.ts'
import { Refund } from '../refunds/view.ts'
import { Transaction } from '../transactions/view.ts'

/** The schema of one event type. `data` is the object as the event's commit left it, shaped as its own route returns it. */
function eventOf<T extends EventType, D extends z.ZodType>(type: T, data: D) {
  return z.strictObject({
    id: z
      .string()
      .openapi({ description: 'Its position in the feed, and the cursor that continues after it' }),
    type: z.literal(type),
    timestamp: Time,
    transactionId: Id,
    merchantCode: z.string(),
    orderId: OrderId,
    merchantTxnId: MerchantTxnId,
    data,
  })
}

/** An event as readers of the feed and webhook endpoints get it. */
export const Event = z
  .discriminatedUnion('type', [
    eventOf('payment.created', Payment),
    eventOf('payment.updated', Payment),
    eventOf('transaction.paid', Transaction),
    eventOf('transaction.updated', Transaction),
    eventOf('transaction.final', Transaction),
    eventOf('refund.created', Refund),
    eventOf('refund.updated', Refund),
    eventOf('external_refund.found', ExternalRefund),
    eventOf('external_refund.updated', ExternalRefund),
    eventOf('sync.abandoned', Transaction),
    eventOf('discrepancy.found', Discrepancy),
    eventOf('discrepancy.updated', Discrepancy),
  ])
  .openapi('Event')

export type EventView = z.infer<typeof Event>

const { shape: HEAD } = eventOf('payment.created', Payment)

/** The columns of the feed as CSV: the object of an event is JSON, because each type has other members. */
export const CsvEvent = z.strictObject({ ...HEAD, data: z.unknown() })

/** A page of the feed. `nextCursor` is never null. */
export const EventPage = z.strictObject({ data: z.array(Event), nextCursor: z.string() })

/** Event types as a query parameter, separated by commas. */
export const TypesParameter = z
  .string()
  .transform((list) => list.split(','))
  .pipe(z.array(z.string().refine(isEventType, `must be one of ${EVENT_TYPES.join(', ')}`)))
  .optional()
  .openapi({
    type: 'string',
    description: `Only these event types, separated by commas: ${EVENT_TYPES.map((type) => `\`${type}\``).join(', ')}`,
  })
