import { createHash } from 'node:crypto'
import type { OrderIds } from '../db/order-facts.ts'
import type { discrepancies } from '../db/schema.ts'
import type { DiscrepancyKind } from './kinds.ts'

/** A discrepancy, with the ids of its transaction's order. */
export type DiscrepancyRow = typeof discrepancies.$inferSelect & OrderIds

type Subject = {
  merchantCode: string
  transactionId: string
  kind: DiscrepancyKind
  paymentId?: string | undefined
  refundId?: string | undefined
}

/** A discrepancy to record. Both sides are text; amounts in it are exact decimals. */
export type NewDiscrepancy = Subject & { ours: string; theirs: string }

/** A discrepancy recorded for the first time. */
export type RecordedDiscrepancy = NewDiscrepancy & { row: DiscrepancyRow }

/** Matches the open discrepancies to resolve, because their sides agree again. A missing member matches any value. */
export type ResolvedDiscrepancy = Subject & { ours?: string | undefined }

/** Both sides of a discrepancy are part of an index, whose rows are at most 2,700 bytes long. */
const MAX_SIDE = 200

/** Shortens the text of a side of a discrepancy; two that differ stay different. */
export function shortenSide(text: string): string {
  if (text.length <= MAX_SIDE) return text
  const digest = createHash('sha256').update(text).digest('hex').slice(0, 16)
  return `${text.slice(0, MAX_SIDE).toWellFormed()}… (SHA-256 ${digest}…)`
}
