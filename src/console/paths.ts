import type { TransactionKey } from '../db/transaction-key.ts'

/** Encodes the parts, since ids may hold any printable character. */
const join = (...parts: readonly string[]) => `/console/${parts.map(encodeURIComponent).join('/')}`

/** Names the `id` attribute of a payment or a refund in a story. */
export const nameAnchor = (kind: 'payment' | 'refund', id: string) =>
  `${kind}-${encodeURIComponent(id)}`

/** @param anchor made by `nameAnchor` */
export function storyPath({ merchantCode, transactionId }: TransactionKey, anchor?: string) {
  const path = join('transactions', merchantCode, transactionId)
  return anchor === undefined ? path : `${path}#${anchor}`
}

export const refundPath = (merchantCode: string, paymentId: string) =>
  join('payments', merchantCode, paymentId, 'refund')

export const surplusPath = (key: TransactionKey) => `${storyPath(key)}/surplus`

export const holdPath = (target: 'payment' | 'refund', merchantCode: string, id: string) =>
  join(`${target}s`, merchantCode, id, 'hold')

export const TASKS_PATH = '/console/tasks'

export const refundPagePath = (merchantCode: string, refundId: string) =>
  join('refunds', merchantCode, refundId)

export const discrepancyPath = (merchantCode: string, id: number | string) =>
  join('discrepancies', merchantCode, String(id))
