import { z } from 'zod'
import { readCount } from '../input.ts'

/** The body of `PUT /sandbox/refund-mode`: it replaces the whole mode, what is left out is default. */
export const refundModeInput = z.strictObject({
  ipn: z.enum(['normal', 'early', 'late', 'twice', 'never']).default('normal'),
  dedupes: z.boolean().default(true),
  guardsBalance: z.boolean().default(true),
  countsUnsettled: z.boolean().default(false),
  settleMs: readCount.nullable().optional(),
})

/**
 * How refunds behave. `settleMs`: milliseconds until a refund ends by itself, null = only by control.
 * `lateMs`: what a late notification waits after that, ten times as long.
 */
export type RefundMode = {
  ipn: 'normal' | 'early' | 'late' | 'twice' | 'never'
  dedupes: boolean
  guardsBalance: boolean
  countsUnsettled: boolean
  settleMs: number | null
  lateMs: number
}

/** Completes a mode with the sandbox's own settling time in milliseconds. */
export function makeRefundMode(
  { settleMs, ...mode }: z.output<typeof refundModeInput>,
  refundMs: number,
): RefundMode {
  return {
    ...mode,
    settleMs: settleMs === undefined ? refundMs : settleMs,
    lateMs: 10 * (settleMs || refundMs),
  }
}
