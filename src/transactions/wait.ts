import type { Context } from '../context.ts'
import { workUnder } from '../http/wait.ts'
import { findTransaction, type TransactionWithPayments } from './find.ts'

/** The key under which readers wait; the payload of the database's notification is the same text. */
export function writeWaitKey(merchantCode: string, transactionId: string): string {
  return JSON.stringify([merchantCode, transactionId])
}

/**
 * Holds until the transaction satisfies `done`, at most `ms`; then returns it as it is. Woken by the
 * change itself: waiting costs no query, and a change costs one for all who wait.
 */
export function waitForTransaction(
  ctx: Context,
  first: TransactionWithPayments,
  done: (found: TransactionWithPayments) => boolean,
  ms: number,
  signal: AbortSignal,
): Promise<TransactionWithPayments> {
  const { merchantCode, transactionId } = first.transaction
  const key = writeWaitKey(merchantCode, transactionId)
  const until = performance.now() + ms
  return workUnder([signal, ctx.stopping], async (end) => {
    for (;;) {
      const watch = ctx.waiters.watch(key)
      try {
        const found = await ctx.waiters.share(key, () =>
          findTransaction(ctx, [merchantCode], transactionId),
        )
        const left = until - performance.now()
        if (done(found) || left <= 0 || end.aborted) return found
        await watch.until(left, end)
      } finally {
        watch.cancel()
      }
    }
  })
}
