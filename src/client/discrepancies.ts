import type { Discrepancy } from './api-types.ts'
import { type Listing, listRoute, type PageWish } from './listing.ts'
import type { CallOptions } from './options.ts'
import { type Transport, writeSegment } from './transport.ts'

export type Discrepancies = {
  /** Lists discrepancies, newest first, with both sides of each. The key needs the scope `ops`. */
  list(
    filter?: PageWish & { kind?: string | undefined },
    options?: CallOptions,
  ): Listing<Discrepancy>
  /**
   * Resolves a discrepancy by a person's decision. The key needs the scope `ops`.
   * @throws NotFoundError, ConflictError `discrepancy_resolved`, whose `detail` is what was decided
   */
  resolve(id: string, reason: string, options?: CallOptions): Promise<Discrepancy>
  /** Adds a note. The key needs the scope `ops`. */
  note(id: string, text: string, options?: CallOptions): Promise<Discrepancy>
  /**
   * Assigns an open discrepancy to a person, or to nobody (`null`). The key needs the scope `ops`.
   * @throws NotFoundError, ConflictError `discrepancy_resolved`
   */
  assign(id: string, name: string | null, options?: CallOptions): Promise<Discrepancy>
}

/** Creates the methods of `client.discrepancies`. */
export function createDiscrepancies(transport: Transport): Discrepancies {
  const post = (id: string, step: string, body: object, options?: CallOptions) => {
    const path = `/v1/discrepancies/${writeSegment('id', id)}/${step}`
    return transport.request<Discrepancy>({ method: 'POST', path, body }, options)
  }
  return {
    resolve: (id, reason, options) => post(id, 'resolution', { reason }, options),
    note: (id, text, options) => post(id, 'note', { text }, options),
    assign: (id, name, options) => post(id, 'assignee', { name }, options),
    list: (filter = {}, options) =>
      listRoute<Discrepancy>(transport, '/v1/discrepancies', filter, options),
  }
}
