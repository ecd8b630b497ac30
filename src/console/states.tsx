import { Badge, type Tone } from '../platform/html/components.tsx'
import type { ExternalState } from '../refunds/external-view.ts'
import type { RefundView } from '../refunds/view.ts'
import type { TransactionView } from '../transactions/view.ts'
import { TEXTS } from './texts/en.ts'

const { states } = TEXTS

const TRANSACTION_TONES: Record<TransactionView['state'], Tone> = {
  pending: 'soft',
  paid: 'good',
  partially_refunded: 'warn',
  refunded: 'warn',
  failed: 'bad',
}

const REFUND_TONES: Record<RefundView['status'], Tone> = {
  awaiting_approval: 'warn',
  pending: 'soft',
  accepted: 'soft',
  unknown: 'warn',
  succeeded: 'good',
  failed: 'bad',
  needs_review: 'bad',
  returned: 'warn',
}

const PAYMENT_TONES: Record<string, Tone> = { SUCCESS: 'good', FAILED: 'bad', PROCESSING: 'soft' }

/** The state of a transaction as a badge. */
export function TransactionState({ state }: { state: TransactionView['state'] }) {
  return <Badge tone={TRANSACTION_TONES[state]}>{states.transaction[state]}</Badge>
}

/** The status of a refund as a badge. */
export function RefundStatus({ status }: { status: RefundView['status'] }) {
  return <Badge tone={REFUND_TONES[status]}>{states.refund[status]}</Badge>
}

/** The state of a refund that was made elsewhere. */
export function ExternalRefundState({ state }: { state: ExternalState }) {
  return <Badge tone={state === 'matched' ? 'good' : 'soft'}>{states.externalRefund[state]}</Badge>
}

/** The status of a payment as a badge; one that is not documented is shown as it came. */
export function PaymentStatus({ status }: { status: string }) {
  return <Badge tone={PAYMENT_TONES[status] ?? 'warn'}>{describeStatus(status)}</Badge>
}

/** The status of a payment in words; one that is not documented is shown as it came. */
export function describeStatus(status: string): string {
  const known = Object.entries(states.payment).find(([name]) => name === status)?.[1]
  return known ?? states.unknown(status)
}

/** The method of a payment in words; one that is not documented is shown as it came. */
export function describeMethod(method: string): string {
  const known = Object.entries(states.paymentMethod).find(([name]) => name === method)?.[1]
  return known ?? states.unknown(method)
}
