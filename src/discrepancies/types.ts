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
