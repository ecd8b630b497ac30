import { SYNC_DUE, TRANSACTION_CHANGED } from '../db/names.ts'
import { formatWakeKey } from '../db/transaction-key.ts'
import { byKey } from '../platform/postgres/by-key.ts'
import { notifyAfterCommit } from '../platform/postgres/notify.ts'
import { rowSet } from '../platform/postgres/row-set.ts'
import { runInTransaction } from '../platform/postgres/transaction.ts'
import type { Sql, Tx } from '../platform/postgres/types.ts'
import { REQUEST_ID } from '../transactions/due.ts'
import { writeArrivals } from './store.ts'
import type { Arrival } from './types.ts'

/** The hash is known with as many other readings as are kept. */
export class RecutError extends Error {
  constructor() {
    super('recut: other notifications with this hash were received')
  }
}

/** Kept readings of a hash: the gateway is asked about so many transactions at most. */
const MAX_READINGS = 2

export type KnownReading = Pick<Arrival, 'fingerprint' | 'published' | 'hint'>

/**
 * Stores notifications whose hash was received with another reading. The first one in published form is the one
 * that is trusted; any other is a hint, and all of them are flagged. A refund notification that is about one of
 * our refunds, with its payment and amount, is trusted whenever it comes: nobody else knows its request id.
 * @returns for each notification whether it was kept
 * @throws database errors
 */
export async function storeReadings(sql: Sql, arrivals: readonly Arrival[]): Promise<boolean[]> {
  return await runInTransaction(sql, async (tx) => {
    const keys = [...new Set(arrivals.map(nameHash))].sort()
    await tx`
      select pg_advisory_xact_lock(hashtextextended(key, 0)) from unnest(${keys}::text[]) as key`
    await flagKnown(tx, arrivals)
    const known = await readKnown(tx, arrivals)
    const own = await findOwn(tx, arrivals)
    const kept = arrivals.map((arrival, place) =>
      judgeReading(arrival, known.get(nameHash(arrival)) ?? [], own.has(place)),
    )
    const stored = kept.flatMap((one) => one ?? [])
    if (stored.length > 0) {
      const { learnt } = await writeArrivals(tx, stored, false)
      notifyAfterCommit(tx, SYNC_DUE)
      for (const key of learnt) notifyAfterCommit(tx, TRANSACTION_CHANGED, formatWakeKey(key))
    }
    return kept.map((one) => one !== undefined)
  })
}

/**
 * Decides about a notification, and adds it to the readings that are known.
 * @param isOwn about a refund of ours, with its payment and amount
 * @returns undefined if it is not kept
 */
export function judgeReading(
  arrival: Arrival,
  known: KnownReading[],
  isOwn: boolean,
): Arrival | undefined {
  const same = known.find(({ fingerprint }) => fingerprint === arrival.fingerprint)
  if (same) return { ...arrival, hint: same.hint, recut: known.length > 1 }
  const { published } = arrival
  // Of two places one is kept free for a reading in published form.
  const hasPlace = known.length < MAX_READINGS && (published || known.every((one) => one.published))
  if (!isOwn && !hasPlace) return undefined
  const hint = !isOwn && (!published || known.some((one) => one.published))
  known.push({ fingerprint: arrival.fingerprint, hint, published })
  return { ...arrival, hint, recut: true }
}

function nameHash({ merchantCode, signedKey }: Arrival): string {
  return `${merchantCode} ${signedKey}`
}

async function readKnown(
  tx: Tx,
  arrivals: readonly Arrival[],
): Promise<Map<string, KnownReading[]>> {
  const rows = await tx<(KnownReading & { merchantCode: string; signedKey: string })[]>`
    select merchant_code as "merchantCode", signed_key::text as "signedKey",
      encode(fingerprint, 'hex') as fingerprint, hint, published
    from ipn_events where (merchant_code, signed_key) in (${selectKeys(tx, arrivals)}) order by id`
  const known = new Map(arrivals.map((one) => [nameHash(one), [] as KnownReading[]]))
  for (const { merchantCode, signedKey, ...reading } of rows) {
    known.get(`${merchantCode} ${signedKey}`)?.push(reading)
  }
  return known
}

const HASH_COLUMNS = { merchantCode: 'text', signedKey: 'bigint' }
const NAMED_COLUMNS = {
  ...{ place: 'int', merchantCode: 'text', requestId: 'text', refundId: 'uuid' },
  ...{ paymentId: 'text', amount: 'numeric' },
}

/** The places of refund notifications that are about a refund of ours, with its payment and amount. */
async function findOwn(tx: Tx, arrivals: readonly Arrival[]): Promise<ReadonlySet<number>> {
  const rows = arrivals.flatMap(({ merchantCode, notification: one }, place) =>
    one.kind === 'refund' && REQUEST_ID.test(one.requestId)
      ? [{ ...one, merchantCode, place, refundId: one.requestId }]
      : [],
  )
  if (rows.length === 0) return new Set()
  const found = await tx<{ place: number }[]>`
    select n.place from ${rowSet(tx, 'n', NAMED_COLUMNS, rows)} cross join lateral (
      select * from refunds as r where ${tx.unsafe(byKey('r', ['merchant_code', 'refund_id'], 'n'))} limit 1) as r
    where r.refund_id::text = n.request_id and r.payment_id = n.payment_id and r.amount = n.amount`
  return new Set(found.map(({ place }) => place))
}

/**
 * Flags the readings that are stored. Two that reached two processes in the same instant were both stored as
 * trusted: only the first one in published form stays so, and one about a refund of ours.
 */
async function flagKnown(tx: Tx, arrivals: readonly Arrival[]): Promise<void> {
  await tx`
    update ipn_events e set recut = true, hint = e.hint or e.id is distinct from (
        select min(f.id) from ipn_events f
        where f.merchant_code = e.merchant_code and f.signed_key = e.signed_key and f.published)
      and not exists (select from refunds r
        where r.merchant_code = e.merchant_code and r.refund_id::text = e.request_id
          and r.payment_id = e.payment_id and r.amount = e.amount)
    where (e.merchant_code, e.signed_key) in (${selectKeys(tx, arrivals)}) and not e.recut`
}

function selectKeys(tx: Tx, arrivals: readonly Arrival[]) {
  return tx`select merchant_code, signed_key from ${rowSet(tx, 'k', HASH_COLUMNS, arrivals)}`
}
