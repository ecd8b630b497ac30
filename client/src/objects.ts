import { type Transport, writeSegment } from './http.ts'
import { type Listing, listRoute } from './lists.ts'
import type { CallOptions } from './options.ts'
import type {
  Discrepancy,
  ExternalRefund,
  HoldState,
  Payment,
  Queries,
  SearchHit,
} from './types.gen.ts'

export type Payments = {
  /**
   * Returns a payment.
   * @throws NotFoundError
   */
  get(paymentId: string, options?: CallOptions): Promise<Payment>
  /** Lists payments, newest first. */
  list(filter?: Queries['listPayments'], options?: CallOptions): Listing<Payment>
  /** Lists the refunds of a payment that were made at the gateway's portal, newest first. */
  externalRefunds(
    paymentId: string,
    filter?: Queries['listExternalRefunds'],
    options?: CallOptions,
  ): Listing<ExternalRefund>
}

/** Creates the methods of `client.payments`. */
export function createPayments(transport: Transport): Payments {
  return {
    get: (id, options) =>
      transport.request({ path: `/v1/payments/${writeSegment('paymentId', id)}` }, options),
    list: (filter = {}, options) => listRoute<Payment>(transport, '/v1/payments', filter, options),
    externalRefunds: (id, filter = {}, options) => {
      const path = `/v1/payments/${writeSegment('paymentId', id)}/external-refunds`
      return listRoute<ExternalRefund>(transport, path, filter, options)
    },
  }
}

/**
 * Finds transactions, payments and refunds by an id, an order id, a reference, or an amount; exact matches first, then
 * those that begin with the text (at least 3 characters). Refunds only with `refunds:read`.
 */
export type Search = (
  q: string,
  page?: Omit<Queries['search'], 'q'>,
  options?: CallOptions,
) => Listing<SearchHit>

/** Creates `client.search`. */
export function createSearch(transport: Transport): Search {
  return (q, page = {}, options) =>
    listRoute<SearchHit>(transport, '/v1/search', { ...page, q }, options)
}

export type Holds = {
  /**
   * Sets a hold: from then on nothing of the target is sent. The key needs the scope `ops`.
   * @throws NotFoundError
   */
  set(
    target: HoldState['target'],
    id: string,
    reason: string,
    options?: CallOptions,
  ): Promise<HoldState>
  /**
   * Releases a hold. The key needs the scope `ops`.
   * @throws NotFoundError, ConflictError `not_held`
   */
  release(
    target: HoldState['target'],
    id: string,
    reason: string,
    options?: CallOptions,
  ): Promise<HoldState>
}

/** Creates the methods of `client.holds`. */
export function createHolds(transport: Transport): Holds {
  const change =
    (method: 'PUT' | 'DELETE'): Holds['set'] =>
    (target, id, reason, options) => {
      const path = `/v1/holds/${target}/${writeSegment('id', id)}`
      return transport.request<HoldState>({ method, path, body: { reason } }, options)
    }
  return { set: change('PUT'), release: change('DELETE') }
}

export type Discrepancies = {
  /** Lists discrepancies, newest first, with both sides of each. The key needs the scope `ops`. */
  list(filter?: Queries['listDiscrepancies'], options?: CallOptions): Listing<Discrepancy>
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
  const post = (id: string, step: string, body: object, options?: CallOptions) =>
    transport.post<Discrepancy>(
      `/v1/discrepancies/${writeSegment('id', id)}/${step}`,
      body,
      options,
    )
  return {
    resolve: (id, reason, options) => post(id, 'resolution', { reason }, options),
    note: (id, text, options) => post(id, 'note', { text }, options),
    assign: (id, name, options) => post(id, 'assignee', { name }, options),
    list: (filter = {}, options) =>
      listRoute<Discrepancy>(transport, '/v1/discrepancies', filter, options),
  }
}
