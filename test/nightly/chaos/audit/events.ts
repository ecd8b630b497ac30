import { z } from 'zod'
import { nameIn } from './names.ts'

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
const ExternalRefund = z.object({
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

const about = { id: z.string(), transactionId: z.string() }
const PaymentEvent = z.object({
  ...about,
  type: z.enum(['payment.created', 'payment.updated']),
  data: Payment,
})
const TransactionEvent = z.object({
  ...about,
  type: z.enum(['transaction.paid', 'transaction.updated', 'transaction.final', 'sync.abandoned']),
  data: Transaction,
})
const RefundEvent = z.object({
  ...about,
  type: z.enum(['refund.created', 'refund.updated']),
  data: Refund,
})
const ExternalRefundEvent = z.object({
  ...about,
  type: z.enum(['external_refund.found', 'external_refund.updated']),
  data: ExternalRefund,
})
const DiscrepancyEvent = z.object({
  ...about,
  type: z.literal('discrepancy.found'),
  data: Discrepancy,
})
/** The members of an event that the auditor checks. */
export const Event = z.discriminatedUnion('type', [
  PaymentEvent,
  TransactionEvent,
  RefundEvent,
  ExternalRefundEvent,
  DiscrepancyEvent,
])

/** An event as it is transmitted to a reader of one account. */
export type SentEvent = z.infer<typeof Event>
/** The same with the ids of all objects named within the account. */
export type ToldEvent = SentEvent & { merchantCode: string }
export type PaymentEvent = z.infer<typeof PaymentEvent> & { merchantCode: string }
export type RefundEvent = z.infer<typeof RefundEvent> & { merchantCode: string }
type ExternalEvent = z.infer<typeof ExternalRefundEvent> & { merchantCode: string }
type TransactionEvent = z.infer<typeof TransactionEvent> & { merchantCode: string }

/** Names every id in the event but its position, which the accounts share. */
export function nameEvent(merchantCode: string, event: SentEvent): ToldEvent {
  const named = (id: string) => nameIn(merchantCode, id)
  const head = { merchantCode, id: event.id, transactionId: named(event.transactionId) }
  const payment = (one: z.infer<typeof Payment>) => ({
    ...one,
    id: named(one.id),
    transactionId: named(one.transactionId),
  })
  switch (event.type) {
    case 'payment.created':
    case 'payment.updated':
      return { ...head, type: event.type, data: payment(event.data) }
    case 'transaction.paid':
    case 'transaction.updated':
    case 'transaction.final':
    case 'sync.abandoned': {
      const payments = event.data.payments.map(payment)
      return { ...head, type: event.type, data: { ...event.data, payments } }
    }
    case 'discrepancy.found': {
      const { id, kind, paymentId, refundId } = event.data
      const ids = {
        id: named(id),
        paymentId: paymentId && named(paymentId),
        refundId: refundId && named(refundId),
      }
      return { ...head, type: event.type, data: { kind, ...ids } }
    }
    case 'refund.created':
    case 'refund.updated': {
      const { id, paymentId } = event.data
      const data = { ...event.data, id: named(id), paymentId: named(paymentId) }
      return { ...head, type: event.type, data }
    }
    default: {
      const { id, paymentId } = event.data
      const data = { ...event.data, id: named(id), paymentId: named(paymentId) }
      return { ...head, type: event.type, data }
    }
  }
}

export function isOfPayment(event: ToldEvent): event is PaymentEvent {
  return event.type === 'payment.created' || event.type === 'payment.updated'
}

export function isOfRefund(event: ToldEvent): event is RefundEvent {
  return event.type === 'refund.created' || event.type === 'refund.updated'
}

export function isOfExternal(event: ToldEvent): event is ExternalEvent {
  return event.type === 'external_refund.found' || event.type === 'external_refund.updated'
}

export function isOfTransaction(event: ToldEvent): event is TransactionEvent {
  return event.type.startsWith('transaction.') || event.type === 'sync.abandoned'
}

export function isFinal(event: ToldEvent): event is TransactionEvent {
  return event.type === 'transaction.final'
}

const NEWS = ['payment.created', 'refund.created', 'external_refund.found', 'discrepancy.found']

/** Whether the event announces a new object. */
export function isNews({ type }: ToldEvent): boolean {
  return NEWS.includes(type)
}

/** Names the event's object, uniquely. */
export function nameSubject(event: ToldEvent): string {
  if (isOfTransaction(event)) return `transaction ${event.transactionId}`
  const [kind] = event.type.split('.')
  return `${kind} ${event.data.id}`
}

export function describe(event: ToldEvent): string {
  const status = 'status' in event.data ? `, ${event.data.status}` : ''
  return `event ${event.id}, ${event.type} of ${nameSubject(event)}${status}`
}
