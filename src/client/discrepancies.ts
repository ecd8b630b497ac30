import type { CallOptions } from './options.ts'
import { type Listing, makeListing, type Page, type PageWish } from './pages.ts'
import type { Discrepancy } from './shapes.ts'
import type { Transport } from './transport.ts'

export type Discrepancies = {
  /** Both sides of every disagreement, newest first; the key needs the scope `ops`. */
  list(
    filter?: PageWish & { kind?: string | undefined },
    options?: CallOptions,
  ): Listing<Discrepancy>
}

export function createDiscrepancies(transport: Transport): Discrepancies {
  return {
    list: ({ cursor: from, ...filter } = {}, options) =>
      makeListing((cursor) => {
        const query = { ...filter, cursor }
        return transport.ask<Page<Discrepancy>>({ path: '/v1/discrepancies', query }, options)
      }, from),
  }
}
