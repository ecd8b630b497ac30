import { formatWakeKey } from '../db/transaction-key.ts'
import { withEitherSignal } from '../platform/concurrency/timing.ts'
import type { TransactionsContext } from './context.ts'
import { findTransaction } from './find-transaction.ts'
import type { FoundTransaction } from './types.ts'

/**
 * Waits until the transaction satisfies `done`, at most `ms` milliseconds, or until the request or the
 * service ends. The commit that changes it wakes the readers: waiting costs no query, and a change costs
 * one query for all readers of the transaction.
 * @returns the transaction as last read, whether it satisfies `done` or not
 */
export function waitForTransaction(
  ctx: TransactionsContext,
  { transaction: { merchantCode, transactionId } }: FoundTransaction,
  done: (found: FoundTransaction) => boolean,
  ms: number,
  signal: AbortSignal,
): Promise<FoundTransaction> {
  const key = formatWakeKey({ merchantCode, transactionId })
  const until = performance.now() + ms
  return withEitherSignal([signal, ctx.stopping], async (end) => {
    for (;;) {
      const watch = ctx.transactionWaiters.watch(key)
      try {
        const found = await ctx.transactionWaiters.shareRead(key, () =>
          findTransaction(ctx, [merchantCode], transactionId),
        )
        const left = until - performance.now()
        if (done(found) || left <= 0 || end.aborted) return found
        await watch.wait(left, end)
      } finally {
        watch.cancel()
      }
    }
  })
}
