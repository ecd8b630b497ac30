import { NotFoundError } from './errors.ts'
import { assumeType, type Transport, writeSegment } from './http.ts'
import { type Listing, listRoute } from './lists.ts'
import type { CallOptions } from './options.ts'
import type { Queries, TimelineEntry, Transaction } from './types.gen.ts'
import { waitFor } from './wait.ts'

export type TransactionState = Transaction['state']

export type TransactionWait = CallOptions & {
  /**
   * The condition to wait for; default `final`. A function is called after each visible change. Changes of
   * only `sync`, `ipnCount` or `asOf` do not necessarily count.
   */
  until?: 'final' | ((transaction: Transaction) => boolean) | undefined
  /**
   * Also wait while the service does not know the transaction, instead of throwing `NotFoundError`: it holds the request
   * until the first notification comes.
   */
  untilKnown?: boolean | undefined
}

export type Transactions = {
  /**
   * Returns a transaction.
   * @throws NotFoundError
   */
  get(transactionId: string, options?: CallOptions): Promise<Transaction>
  /** Lists transactions, newest first. */
  list(filter?: Queries['listTransactions'], options?: CallOptions): Listing<Transaction>
  /**
   * Resolves as soon as the condition is met: the service holds each request until the transaction changes.
   * Survives restarts of the service. `timeoutMs` defaults to 300,000 (5 minutes).
   * @throws TimeoutError, NotFoundError
   */
  wait(transactionId: string, options?: TransactionWait): Promise<Transaction>
  /** Queries the gateway now; also registers a transaction whose notification never arrived. */
  sync(transactionId: string, options?: CallOptions): Promise<Transaction>
  /** Lists the history of a transaction, oldest first. */
  timeline(
    transactionId: string,
    page?: Queries['readTimeline'],
    options?: CallOptions,
  ): Listing<TimelineEntry>
}

/** Creates the methods of `client.transactions`. */
export function createTransactions(transport: Transport): Transactions {
  const locate = (id: string) => `/v1/transactions/${writeSegment('transactionId', id)}`
  return {
    get: (id, options) => transport.request({ path: locate(id) }, options),
    list: (filter = {}, options) =>
      listRoute<Transaction>(transport, '/v1/transactions', filter, options),
    wait: (id, options = {}) => waitForTransaction(transport, locate(id), options),
    sync: (id, options) => transport.post(`${locate(id)}/sync`, {}, options),
    timeline: (id, page = {}, options) =>
      listRoute<TimelineEntry>(transport, `${locate(id)}/timeline`, page, options),
  }
}

/** Matches no response: the service answers as soon as it knows the transaction. */
const NO_ETAG = '"none"'

/** Reads once; the service then holds each request until the transaction differs from the last response. */
function waitForTransaction(
  transport: Transport,
  path: string,
  { until = 'final', untilKnown = false, ...limits }: TransactionWait,
): Promise<Transaction> {
  const isDone = until === 'final' ? ({ final }: Transaction) => final : until
  let etag = untilKnown ? NO_ETAG : undefined
  return waitFor(transport, path, limits, async (wait, options) => {
    const ifChanged =
      etag === undefined ? {} : { query: { wait }, holdS: wait, headers: { 'if-none-match': etag } }
    try {
      const response = await transport.send({ path, ...ifChanged, persistent: true }, options)
      if (response.status === 304) return undefined
      etag = response.headers.get('etag') ?? etag
      const result = assumeType<Transaction>(response.body)
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
