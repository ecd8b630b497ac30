import { z } from '@hono/zod-openapi'
import { Discrepancy } from '../discrepancies/view.ts'
import { EVENT_SCOPES, type EventType } from '../events/event.ts'
import { Id, Time } from '../http/input.ts'
import { Payment } from '../payments/view.ts'
import { Refund } from '../refunds/view.ts'
import { Transaction } from '../transactions/view.ts'

/** An event of one type; `data` is the object as the event's commit left it, shaped as its own route answers. */
function eventOf<T extends EventType, D extends z.ZodType>(type: T, data: D) {
  return z.strictObject({
    id: z.string().openapi({ description: 'Its place in the feed, and the cursor behind it' }),
    type: z.literal(type),
    timestamp: Time,
    transactionId: Id,
    data,
  })
}

/** An event as readers of the feed and receivers of webhooks get it. */
export const Event = z
  .discriminatedUnion('type', [
    eventOf('payment.created', Payment),
    eventOf('payment.updated', Payment),
    eventOf('transaction.final', Transaction),
    eventOf('refund.created', Refund),
    eventOf('refund.updated', Refund),
    eventOf('sync.abandoned', Transaction),
    eventOf('discrepancy.found', Discrepancy),
  ])
  .openapi('Event')

export type EventView = z.infer<typeof Event>

/** A page of the feed: ask again with `nextCursor`, which is never null. */
export const EventPage = z.strictObject({ data: z.array(Event), nextCursor: z.string() })

const KNOWN = Object.keys(EVENT_SCOPES)

export function isEventType(type: string): type is EventType {
  return KNOWN.includes(type)
}

/** Event types as a query parameter: a list with commas. */
export const TypesParameter = z
  .string()
  .transform((list) => list.split(','))
  .pipe(z.array(z.string().refine(isEventType, `must be of ${KNOWN.join(', ')}`)))
  .optional()
  .openapi({
    type: 'string',
    description: `Only these, a list with commas: of ${KNOWN.map((type) => `\`${type}\``).join(', ')}`,
  })
