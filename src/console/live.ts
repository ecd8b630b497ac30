import { createHash } from 'node:crypto'
import { waitForTransaction } from '../transactions/find-transaction.ts'
import type { FoundTransaction } from '../transactions/types.ts'
import type { ConsoleContext } from './context.ts'
import { TOKEN_FIELD } from './form-guard.ts'

/** How long a page's request is held open (ms): shorter than proxies wait. */
const WAIT_MS = 25_000

/** Pages that may wait at once in this process; further ones ask again after a pause. */
const MAX_WAITING = 200

/** How long such a page pauses (s). */
export const PAUSE_S = 15

/** Waits until something about a transaction changes. */
export type NewsWaiter = (
  found: FoundTransaction,
  signal: AbortSignal,
) => Promise<'waited' | 'full'>

/** Creates the waiting of pages, which is bounded together. */
export function createNewsWaiter(
  ctx: ConsoleContext,
  { waitMs = WAIT_MS, maxWaiting = MAX_WAITING } = {},
): NewsWaiter {
  let waiting = 0
  return async (found, signal) => {
    if (waiting >= maxWaiting) return 'full'
    waiting += 1
    try {
      const before = formatMark(found)
      const isNews = (now: FoundTransaction) => formatMark(now) !== before
      const { merchantCode, transactionId } = found.transaction
      const wanted = { merchants: [merchantCode], transactionId }
      await waitForTransaction(ctx, wanted, isNews, waitMs, signal)
      return 'waited'
    } finally {
      waiting -= 1
    }
  }
}

/** Differs after every commit of a query, also if it changed nothing that order systems see. */
function formatMark({ transaction: t }: FoundTransaction): string {
  return JSON.stringify([t.version, t.asOf, t.attempts, t.abandonedAt, t.ipnCount, t.unconfirmed])
}

/** Each form has a token of its own, and differs although the page shows the same. */
const TOKENS = new RegExp(`name="${TOKEN_FIELD}" value="[^"]*"`, 'g')

/** A tag that changes whenever a person sees something else. */
export function tagParts(html: string): string {
  const digest = createHash('sha256').update(html.replaceAll(TOKENS, '')).digest('base64url')
  return `"${digest.slice(0, 22)}"`
}
