import { z } from '@hono/zod-openapi'
import { Discrepancy } from '../discrepancies/routes.ts'
import { invalidField } from '../errors.ts'
import { EVENT_TYPES, EVENTS, type EventType, isEventType } from '../events/event.ts'
import { Endpoint } from '../events/webhook-endpoint.ts'
import { Id, MerchantTxnId, OrderId, Time } from '../http/fields.ts'
import { Payment } from '../payments/view.ts'
import { ExternalRefund } from '../refunds/external-view.ts'
import { Refund } from '../refunds/view.ts'
import { Transaction } from '../transactions/view.ts'

const DATA = {
  payment: Payment,
  transaction: Transaction,
  refund: Refund,
  external_refund: ExternalRefund,
  discrepancy: Discrepancy,
  webhook_endpoint: Endpoint,
} satisfies Record<(typeof EVENTS)[EventType]['object'], z.ZodType>

/** Describes an event; `data` is the object as the commit left it, in the form that its own route returns. */
function eventOf(type: EventType) {
  return z.strictObject({
    id: z
      .string()
      .openapi({ description: 'Its position in the feed, and the cursor that continues after it' }),
    type: z.literal(type),
    apiVersion: z.string().openapi({
      description:
        'The version of the shape of events; an endpoint keeps the one it was registered with',
      example: '2026-11',
    }),
    timestamp: Time,
    transactionId: Id,
    merchantCode: z.string(),
    orderId: OrderId,
    merchantTxnId: MerchantTxnId,
    data: DATA[EVENTS[type].object],
  })
}

const FIRST = 'payment.created'
const OTHERS = EVENT_TYPES.filter((type) => type !== FIRST)

export const Event = z
  .discriminatedUnion('type', [eventOf(FIRST), ...OTHERS.map(eventOf)])
  .openapi('Event')

export type EventView = z.infer<typeof Event>

const { shape: HEAD } = eventOf(FIRST)

/** In CSV, `data` is JSON text, because its members depend on the type. */
export const CsvEvent = z.strictObject({ ...HEAD, data: z.unknown() })

export const EventPage = z.strictObject({ data: z.array(Event), nextCursor: z.string() })

export const TypesParameter = z
  .string()
  .transform((list) => list.split(','))
  .pipe(z.array(z.string().refine(isEventType, `must be one of ${EVENT_TYPES.join(', ')}`)))
  .optional()
  .openapi({
    type: 'string',
    description: `Only these event types, separated by commas: ${EVENT_TYPES.map((type) => `\`${type}\``).join(', ')}`,
  })

const NOT_ISSUED = 'is not a cursor of this feed'
const LAST_READ =
  'The `id` of the last event read, or `nextCursor`; without it the oldest event kept comes first'

export const Cursor = z
  .string()
  .regex(/^\d{1,18}$/, NOT_ISSUED)
  .transform(Number)
  .optional()
  .openapi({
    type: 'string',
    pattern: '^\\d{1,18}$',
    description: LAST_READ,
  })

export const After = z
  .union([z.literal('latest'), Cursor], 'is neither a cursor of this feed nor `latest`')
  .optional()
  .openapi({
    type: 'string',
    pattern: '^(latest|\\d{1,18})$',
    description: `${LAST_READ}, and with \`latest\` only events from now on`,
  })

/** Refuses a cursor that this feed never issued. @param path the request field with the cursor */
export const refuseCursor = (path: string, hint: string) => invalidField(path, NOT_ISSUED + hint)
