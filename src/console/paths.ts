import type { TransactionKey } from '../db/transaction-key.ts'

/** The paths of the pages about one object. Ids may hold any printable character. */
const join = (...parts: readonly string[]) => `/console/${parts.map(encodeURIComponent).join('/')}`

/** The `id` attribute of what a story shows of a payment or a refund. */
export function nameAnchor(kind: 'payment' | 'refund', id: string): string {
  return `${kind}-${encodeURIComponent(id)}`
}

/**
 * The story of a transaction.
 * @param anchor made by `nameAnchor`: the part of the page to begin at
 */
export function storyPath(
  { merchantCode, transactionId }: TransactionKey,
  anchor?: string,
): string {
  const path = join('transactions', merchantCode, transactionId)
  return anchor === undefined ? path : `${path}#${anchor}`
}

/** The form to refund a payment. */
export function refundPath(merchantCode: string, paymentId: string): string {
  return `${join('payments', merchantCode, paymentId)}/refund`
}

/** The form to refund what was paid beyond one success of the transaction's order. */
export function surplusPath(key: TransactionKey): string {
  return `${storyPath(key)}/surplus`
}

/** An action on a payment or a refund, carried out by POST. */
export function actionPath(
  kind: 'payments' | 'refunds',
  { merchantCode, id }: { merchantCode: string; id: string },
  action: string,
): string {
  return `${join(kind, merchantCode, id)}/${action}`
}

/** What waits for a person. */
export const TASKS_PATH = '/console/tasks'

/** The page of one refund, where people approve, decide and cancel. */
export function refundPagePath(merchantCode: string, refundId: string): string {
  return join('refunds', merchantCode, refundId)
}

/** The page of one discrepancy. */
export function discrepancyPath(merchantCode: string, id: number | string): string {
  return join('discrepancies', merchantCode, String(id))
}
