import { Badge, type Tone } from '../platform/html/components.tsx'
import type { ExternalState } from '../refunds/external-view.ts'
import type { RefundView } from '../refunds/view.ts'
import type { TransactionView } from '../transactions/view.ts'
import { t } from './view.ts'
import { nameKnown } from './words.ts'

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

/** A state in words, and how it is meant. */
export type Sign = [words: string, tone: Tone]

/** The state of a transaction; that it was paid more than once goes before it. */
export function signTransaction(
  transaction: Pick<TransactionView, 'state'> & { duplicatePayment?: boolean },
): Sign {
  const { state, duplicatePayment } = transaction
  const isTwice = duplicatePayment === true && state === 'paid'
  return isTwice
    ? [t('states.paidTwice'), 'warn']
    : [t(`states.transaction.${state}`), TRANSACTION_TONES[state]]
}

/** The status of a refund. */
export function signRefund(status: RefundView['status']): Sign {
  return [t(`states.refund.${status}`), REFUND_TONES[status]]
}

/** The status of a payment; one that is not documented is shown as it came. */
export function signPayment(status: string): Sign {
  return [describeStatus(status), PAYMENT_TONES[status] ?? 'warn']
}

/** The state of a transaction as a badge. */
export function TransactionState(props: { state: TransactionView['state'] }) {
  const [words, tone] = signTransaction(props)
  return <Badge tone={tone}>{words}</Badge>
}

/** The status of a refund as a badge. */
export function RefundStatus({ status }: { status: RefundView['status'] }) {
  const [words, tone] = signRefund(status)
  return <Badge tone={tone}>{words}</Badge>
}

/** The state of a refund that was made elsewhere. */
export function ExternalRefundState({ state }: { state: ExternalState }) {
  return (
    <Badge tone={state === 'matched' ? 'good' : 'soft'}>
      {t(`states.externalRefund.${state}`)}
    </Badge>
  )
}

/** The status of a payment as a badge. */
export function PaymentStatus({ status }: { status: string }) {
  const [words, tone] = signPayment(status)
  return <Badge tone={tone}>{words}</Badge>
}

/** The status of a payment in words; one that is not documented is shown as it came. */
export function describeStatus(status: string): string {
  return nameKnown('states.payment', status)
}

/** The method of a payment in words; one that is not documented is shown as it came. */
export function describeMethod(method: string): string {
  return nameKnown('states.paymentMethod', method)
}
