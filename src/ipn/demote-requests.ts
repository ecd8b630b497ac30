import { byKey } from '../platform/postgres/by-key.ts'
import { rowSet } from '../platform/postgres/row-set.ts'
import type { Sql } from '../platform/postgres/types.ts'
import type { Arrival } from './types.ts'

/**
 * Makes hints of the notifications whose signed text is that of a request: they lead to a query, but settle, reserve
 * and name nothing. Sends a statement only if a text may be that of a REFUND request without a receiver.
 * @returns in the order of the notifications
 * @throws database errors
 */
export async function demoteRequests(
  sql: Sql,
  arrivals: readonly Arrival[],
): Promise<readonly Arrival[]> {
  if (arrivals.every(({ origin }) => origin === 'notification')) return arrivals
  const requested = await findRequested(sql, arrivals)
  return arrivals.map((arrival, place) =>
    arrival.origin === 'request' || requested.has(place) ? demote(arrival) : arrival,
  )
}

/** Without its code it is no result of a refund of ours either, whose notifications count in any form. */
function demote(arrival: Arrival): Arrival {
  const { notification } = arrival
  return {
    ...arrival,
    notification: { ...notification, code: undefined },
    published: false,
    hint: true,
  }
}

const COLUMNS = { place: 'int', merchantCode: 'text', paymentId: 'text' }

/** The places of those whose text is that of a REFUND request for a payment of the account. */
async function findRequested(sql: Sql, arrivals: readonly Arrival[]): Promise<ReadonlySet<number>> {
  const rows = arrivals.flatMap(({ origin, merchantCode }, place) =>
    typeof origin === 'object' ? [{ place, merchantCode, paymentId: origin.paymentId }] : [],
  )
  if (rows.length === 0) return new Set()
  const found = await sql<{ place: number }[]>`
    select k.place from ${rowSet(sql, 'k', COLUMNS, rows)} cross join lateral (
      select from payments as p where ${sql.unsafe(byKey('p', ['merchant_code', 'payment_id'], 'k'))} limit 1) as p`
  return new Set(found.map(({ place }) => place))
}
