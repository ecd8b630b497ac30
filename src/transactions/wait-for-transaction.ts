import { formatUnknownKey, formatWakeKey } from '../db/transaction-key.ts'
import { DomainError } from '../errors.ts'
import { withEitherSignal } from '../platform/concurrency/timing.ts'
import { findIfKnown, findTransaction, unknownTransaction } from './find-transaction.ts'
import type { FoundTransaction, TransactionLookup, TransactionsContext } from './types.ts'

/**
 * Waits until the transaction is known and satisfies `done`, at most `ms` milliseconds, or until the request or the
 * service ends. The commit that registers or changes it wakes the readers: waiting costs no query, and a change costs
 * one query for all readers of the transaction.
 * @returns the transaction as last read, whether it satisfies `done` or not
 * @throws DomainError as `findTransaction` does: `transaction_not_found` only when the time is over, `unavailable` if the
 *   service stops before that
 */
export function waitForTransaction(
  ctx: TransactionsContext,
  wanted: TransactionLookup,
  done: (found: FoundTransaction) => boolean,
  ms: number,
  signal: AbortSignal,
): Promise<FoundTransaction> {
  const until = performance.now() + ms
  return withEitherSignal([signal, ctx.stopping], async (end) => {
    const first = await waitUntilKnown(ctx, wanted, until, end)
    const { merchantCode, transactionId } = first.transaction
    const key = formatWakeKey({ merchantCode, transactionId })
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

/** An order system may ask before the gateway notifies. The wake names the id only: what it may see, the look-up decides. */
async function waitUntilKnown(
  ctx: TransactionsContext,
  { merchants, transactionId }: TransactionLookup,
  until: number,
  end: AbortSignal,
): Promise<FoundTransaction> {
  for (;;) {
    const watch = ctx.transactionWaiters.watch(formatUnknownKey(transactionId))
    try {
      const found = await findIfKnown(ctx, merchants, transactionId)
      if (found) return found
      if (ctx.stopping.aborted) {
        throw new DomainError('unavailable', 'The service stops before the time is over: ask again')
      }
      const left = until - performance.now()
      if (left <= 0 || end.aborted) throw unknownTransaction(transactionId)
      await watch.wait(left, end)
    } finally {
      watch.cancel()
    }
  }
}
