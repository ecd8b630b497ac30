import type { Discrepancy } from './api-types.ts'
import { type Listing, makeListing, type Page, type PageWish } from './listing.ts'
import type { CallOptions } from './options.ts'
import type { Transport } from './transport.ts'

export type Discrepancies = {
  /** Lists discrepancies, newest first, with both sides of each. The key needs the scope `ops`. */
  list(
    filter?: PageWish & { kind?: string | undefined },
    options?: CallOptions,
  ): Listing<Discrepancy>
}

/** Creates the methods of `client.discrepancies`. */
export function createDiscrepancies(transport: Transport): Discrepancies {
  return {
    list: ({ cursor: from, ...filter } = {}, options) =>
      makeListing((cursor) => {
        const query = { ...filter, cursor }
        return transport.request<Page<Discrepancy>>({ path: '/v1/discrepancies', query }, options)
      }, from),
  }
}
