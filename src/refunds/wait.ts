import type { Context } from '../context.ts'
import { workUnder } from '../http/wait.ts'
import { writeWaitKey } from '../transactions/wait.ts'
import { findRefund, type RefundRecord } from './find.ts'

const ENDS = ['succeeded', 'failed', 'needs_review']

/** Holds until a refund succeeded, failed or needs a person, at most `ms`; then returns it as it is. */
export function waitForRefund(
  ctx: Context,
  { refund }: RefundRecord,
  ms: number,
  signal: AbortSignal,
): Promise<RefundRecord> {
  const until = performance.now() + ms
  return workUnder([signal, ctx.stopping], async (end) => {
    for (;;) {
      const watch = ctx.waiters.watch(writeWaitKey(refund.merchantCode, refund.transactionId))
      try {
        const found = await findRefund(ctx, [refund.merchantCode], refund.refundId)
        const left = until - performance.now()
        if (ENDS.includes(found.refund.status) || left <= 0 || end.aborted) return found
        await watch.until(left, end)
      } finally {
        watch.cancel()
      }
    }
  })
}
