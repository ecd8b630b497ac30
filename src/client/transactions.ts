import { NotFoundError } from './errors.ts'
import type { TimelineEntry } from './history.ts'
import type { CallOptions } from './options.ts'
import { type Listing, makeListing, type Page, type PageWish } from './pages.ts'
import type { Transaction, TransactionState } from './shapes.ts'
import { type Transport, trust, writeSegment } from './transport.ts'
import { waitFor } from './wait.ts'

/** `from` is included, `to` is not. */
export type TransactionFilter = PageWish & {
  state?: TransactionState | undefined
  orderId?: string | undefined
  from?: string | Date | undefined
  to?: string | Date | undefined
}

export type TransactionWait = CallOptions & {
  /**
   * What is waited for. A test is asked after every visible change; what stands in `sync`, `ipnCount` and
   * `asOf` may change without being one. Default `final`.
   */
  until?: 'final' | ((transaction: Transaction) => boolean) | undefined
  /** Waits also for a transaction that the service has not heard of yet, instead of a `NotFoundError`. */
  untilKnown?: boolean | undefined
}

export type Transactions = {
  /** @throws NotFoundError */
  get(transactionId: string, options?: CallOptions): Promise<Transaction>
  /** Newest first. */
  list(filter?: TransactionFilter, options?: CallOptions): Listing<Transaction>
  /**
   * Resolves as soon as it is so, without polling; survives restarts of the service. `timeoutMs` is 5
   * minutes unless it says else.
   * @throws TimeoutError, NotFoundError
   */
  wait(transactionId: string, options?: TransactionWait): Promise<Transaction>
  /** Has the gateway asked now; also registers a transaction whose notification never came. */
  sync(transactionId: string, options?: CallOptions): Promise<Transaction>
  /** Everything that happened to it, oldest first. */
  timeline(transactionId: string, wish?: PageWish, options?: CallOptions): Listing<TimelineEntry>
}

export function createTransactions(transport: Transport): Transactions {
  const locate = (id: string) => `/v1/transactions/${writeSegment('transactionId', id)}`
  return {
    get: (id, options) => transport.ask({ path: locate(id) }, options),
    list: ({ cursor: from, ...filter } = {}, options) =>
      makeListing((cursor) => {
        const query = { ...filter, cursor }
        return transport.ask<Page<Transaction>>({ path: '/v1/transactions', query }, options)
      }, from),
    wait: (id, options = {}) => waitForTransaction(transport, locate(id), options),
    sync: (id, options) =>
      transport.ask({ method: 'POST', path: `${locate(id)}/sync`, body: {} }, options),
    timeline: (id, { cursor: from, ...wish } = {}, options) =>
      makeListing((cursor) => {
        const query = { ...wish, cursor }
        return transport.ask<Page<TimelineEntry>>(
          { path: `${locate(id)}/timeline`, query },
          options,
        )
      }, from),
  }
}

/** Looks once, then has the service hold each request until the transaction differs from the last look. */
function waitForTransaction(
  transport: Transport,
  path: string,
  { until = 'final', untilKnown = false, ...limits }: TransactionWait,
): Promise<Transaction> {
  const isDone = until === 'final' ? ({ final }: Transaction) => final : until
  let seen: string | undefined
  return waitFor(transport, path, limits, async (wait, options) => {
    const known =
      seen === undefined ? {} : { query: { wait }, holdS: wait, headers: { 'if-none-match': seen } }
    try {
      const answer = await transport.call({ path, ...known, persistent: true }, options)
      if (answer.status === 304) return undefined
      seen = answer.headers.get('etag') ?? undefined
      const result = trust<Transaction>(answer.body)
      return isDone(result) ? { result } : undefined
    } catch (error) {
      if (untilKnown && isUnknown(error)) return undefined
      throw error
    }
  })
}

function isUnknown(error: unknown): boolean {
  return error instanceof NotFoundError && error.code === 'transaction_not_found'
}
