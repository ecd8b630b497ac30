import type { PaymentEvent, RefundEvent, ToldEvent, TransactionEvent } from './feed.ts'

export function isOfPayment(event: ToldEvent): event is PaymentEvent {
  return event.type === 'payment.created' || event.type === 'payment.updated'
}

export function isOfRefund(event: ToldEvent): event is RefundEvent {
  return event.type === 'refund.created' || event.type === 'refund.updated'
}

export function isOfTransaction(event: ToldEvent): event is TransactionEvent {
  return event.type === 'transaction.final' || event.type === 'sync.abandoned'
}

export function isFinal(event: ToldEvent): event is TransactionEvent {
  return event.type === 'transaction.final'
}

/** Whether the event announces a new object. */
export function isNews({ type }: ToldEvent): boolean {
  return type === 'payment.created' || type === 'refund.created' || type === 'discrepancy.found'
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
