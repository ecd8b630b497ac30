import { z } from 'zod'
import { nameIn } from './ledgers.ts'

/** The members of an event that the auditor checks. */
const Payment = z.object({
  id: z.string(),
  transactionId: z.string(),
  status: z.string(),
  amount: z.string(),
  refundedAmount: z.string(),
  asOf: z.string(),
})
const Transaction = z.object({
  state: z.string(),
  refundedAmount: z.string(),
  final: z.boolean(),
  payments: z.array(Payment),
})
const Refund = z.object({
  id: z.string(),
  paymentId: z.string(),
  amount: z.string(),
  status: z.string(),
  inferred: z.boolean(),
})
const External = z.object({
  id: z.string(),
  paymentId: z.string(),
  amount: z.string(),
  state: z.string(),
})
const Discrepancy = z.object({
  id: z.string(),
  kind: z.string(),
  paymentId: z.string().nullable(),
  refundId: z.string().nullable(),
})

const about = { merchantCode: z.string(), id: z.string(), transactionId: z.string() }
const ofTypes = <const T extends readonly [string, ...string[]], D extends z.ZodType>(
  types: T,
  data: D,
) => z.object({ ...about, type: z.enum(types), data })

const PaymentEvent = ofTypes(['payment.created', 'payment.updated'], Payment)
const TransactionEvent = ofTypes(
  ['transaction.paid', 'transaction.updated', 'transaction.final', 'sync.abandoned'],
  Transaction,
)
const RefundEvent = ofTypes(['refund.created', 'refund.updated'], Refund)
const ExternalEvent = ofTypes(['external_refund.found', 'external_refund.updated'], External)
const DiscrepancyEvent = ofTypes(['discrepancy.found', 'discrepancy.updated'], Discrepancy)
/** In place of a transaction it names the endpoint. */
const EndpointEvent = ofTypes(
  ['webhook_endpoint.failing', 'webhook_endpoint.disabled', 'webhook_endpoint.recovered'],
  z.object({ id: z.string() }),
)
const Event = z.discriminatedUnion('type', [
  ...([PaymentEvent, TransactionEvent, RefundEvent] as const),
  ...([ExternalEvent, DiscrepancyEvent, EndpointEvent] as const),
])

/** An event as a reader of an account got it, its objects named within that account; the accounts share the positions. */
export type FedEvent = z.infer<typeof Event>
export type PaymentEvent = z.infer<typeof PaymentEvent>
export type RefundEvent = z.infer<typeof RefundEvent>
type ExternalEvent = z.infer<typeof ExternalEvent>
type TransactionEvent = z.infer<typeof TransactionEvent>

const Named = z.record(z.string(), z.unknown())
const NAMES = ['id', 'transactionId', 'paymentId', 'refundId']

/** @param merchantCode whose reader it is */
export function readEvent(merchantCode: string, value: unknown): FedEvent {
  const nameAll = (object: unknown): Record<string, unknown> =>
    Object.fromEntries(
      Object.entries(Named.parse(object)).map(([member, one]) => {
        if (member === 'payments' && Array.isArray(one)) return [member, one.map(nameAll)]
        const isName = NAMES.includes(member) && typeof one === 'string'
        return [member, isName ? nameIn(merchantCode, one) : one]
      }),
    )
  const { id, data, ...rest } = Named.parse(value)
  return Event.parse({ ...nameAll(rest), id, merchantCode, data: nameAll(data) })
}

const isOf =
  <E extends FedEvent>(...types: readonly string[]) =>
  (event: FedEvent): event is E =>
    types.some((type) => event.type === type || event.type.startsWith(`${type}.`))

export const isOfPayment = isOf<PaymentEvent>('payment')
export const isOfRefund = isOf<RefundEvent>('refund')
export const isOfExternal = isOf<ExternalEvent>('external_refund')
export const isOfTransaction = isOf<TransactionEvent>('transaction', 'sync.abandoned')
/** Of a webhook endpoint, which is none of the objects that the ledgers hold. */
export const isOfEndpoint = (event: FedEvent): boolean => event.type.startsWith('webhook_endpoint.')

export function isFinal(event: FedEvent): event is TransactionEvent {
  return event.type === 'transaction.final'
}

const NEWS = ['payment.created', 'refund.created', 'external_refund.found', 'discrepancy.found']

/** Whether the event announces a new object. */
export function isNews({ type }: FedEvent): boolean {
  return NEWS.includes(type)
}

/** Names the event's object, uniquely. */
export function nameSubject(event: FedEvent): string {
  if (isOfTransaction(event)) return `transaction ${event.transactionId}`
  const [kind] = event.type.split('.')
  return `${kind} ${event.data.id}`
}

export function describe(event: FedEvent): string {
  const status = 'status' in event.data ? `, ${event.data.status}` : ''
  return `event ${event.id}, ${event.type} of ${nameSubject(event)}${status}`
}
