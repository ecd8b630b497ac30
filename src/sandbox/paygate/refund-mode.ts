import { z } from 'zod'
import { countOrMs, decimalAmount } from '../control-input.ts'
import type { RefundMode } from '../types.ts'

/** The body of `PUT /sandbox/refund-mode`. It replaces the mode; omitted members take their default. */
export const refundModeInput = z.strictObject({
  ipn: z.enum(['normal', 'early', 'late', 'twice', 'never']).default('normal'),
  dedupes: z.boolean().default(true),
  guardsBalance: z.boolean().default(true),
  countsUnsettled: z.boolean().default(false),
  fee: decimalAmount.default('0'),
  settleMs: countOrMs.nullable().optional(),
})

/** Completes a mode; `refundMs` is the default settling time in milliseconds. */
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
