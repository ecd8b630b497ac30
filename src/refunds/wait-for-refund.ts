import { formatWakeKey } from '../db/transaction-key.ts'
import { withEitherSignal } from '../platform/concurrency/timing.ts'
import type { TransactionsContext } from '../transactions/context.ts'
import { type FoundRefund, findRefund } from './find-refunds.ts'

const FINISHED = ['succeeded', 'failed', 'needs_review', 'returned']

/**
 * Waits until a refund has ended or needs a decision, at most `ms`.
 * @returns the refund as it is by then
 */
export function waitForRefund(
  ctx: Pick<TransactionsContext, 'db' | 'stopping' | 'transactionWaiters'>,
  { refund }: FoundRefund,
  ms: number,
  signal: AbortSignal,
): Promise<FoundRefund> {
  const until = performance.now() + ms
  return withEitherSignal([signal, ctx.stopping], async (end) => {
    for (;;) {
      const watch = ctx.transactionWaiters.watch(formatWakeKey(refund))
      try {
        const found = await findRefund(ctx, [refund.merchantCode], refund.refundId)
        const left = until - performance.now()
        if (FINISHED.includes(found.refund.status) || left <= 0 || end.aborted) return found
        await watch.wait(left, end)
      } finally {
        watch.cancel()
      }
    }
  })
}
