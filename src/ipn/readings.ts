import { ipnEvents } from '../db/schema.ts'
import { byKey } from '../platform/postgres/by-key.ts'
import { pickColumns, rowSet, toSnakeCase } from '../platform/postgres/row-set.ts'
import type { Sql } from '../platform/postgres/types.ts'
import { REQUEST_ID } from '../transactions/due.ts'
import { MEANING, type PlacedReading, type ReceivedNotification, storeAtPlaces } from './store.ts'

/** `stored`: committed. `recut`: refused, because its text is stored with other meanings already. */
export type Receipt = 'stored' | 'recut'

type Outcome = PromiseSettledResult<Receipt>

const STORED: Outcome = { status: 'fulfilled', value: 'stored' }
const RECUT: Outcome = { status: 'fulfilled', value: 'recut' }

/**
 * Stores a batch of notifications. The hash joins values without names or separators, so one signed text can be cut
 * into members in many ways (readings). Four readings of a text are kept at most, each at a place of its own; a
 * unique key guards the places, also between processes:
 *
 * 1. a reading in documented form, which is trusted;
 * 2. any other reading, which leads to a query, and settles a refund of ours only if it has its id, payment and
 *    amount;
 * 3. one that names a refund of ours with its payment, amount and a result, when place 2 is taken;
 * 4. the same without a result.
 *
 * A notification that means what a stored one means counts as another delivery of it. One statement never takes two
 * meanings of a text: the second waits for the outcome of the first. The loop ends because a reading whose place was
 * taken has one place less to try. Never rejects.
 * @returns one result for each notification, in order; an error means that it may not be stored
 */
export async function storeNotifications(
  sql: Sql,
  batch: readonly ReceivedNotification[],
): Promise<Outcome[]> {
  const results: Outcome[] = []
  const end = (one: PlacedReading, outcome: Outcome) => {
    for (const item of one.items) results[item] = outcome
    waiting.delete(one)
  }
  const waiting = new Set(foldReadings(batch))
  /** Texts with a reading that was sent to the database: place 1 may be taken for the others. */
  const sent = new Set<string>()
  while (waiting.size > 0) {
    const wave = await choosePlaces(sql, waiting, sent, end)
    for (const { notification } of wave) sent.add(notification.textHash)
    for (const kind of ['payment', 'refund'] as const) {
      const ofKind = wave.filter(({ notification }) => notification.kind === kind)
      const stored = await storeAtPlaces(sql, kind, ofKind)
      for (const [at, one] of ofKind.entries()) {
        const reason = stored[at]
        if (reason === true) end(one, STORED)
        else if (reason) end(one, { status: 'rejected', reason })
      }
    }
  }
  return results
}

/** Merges notifications with the same meaning; a documented one stands for all of them. */
export function foldReadings(batch: readonly ReceivedNotification[]): PlacedReading[] {
  const texts = new Map<string, PlacedReading[]>()
  for (const [item, notification] of batch.entries()) {
    const readings = texts.get(notification.textHash) ?? []
    const same = readings.find((one) => isSameMeaning(one.notification, notification))
    if (same) {
      same.items.push(item)
      if (!same.notification.documented) same.notification = notification
    } else {
      readings.push({ notification, place: 0, items: [item] })
      texts.set(notification.textHash, readings)
    }
  }
  return [...texts.values()].flat()
}

function isSameMeaning(a: ReceivedNotification, b: ReceivedNotification): boolean {
  const isSame = (name: string) => Reflect.get(a, name) === Reflect.get(b, name)
  return a.kind === b.kind && MEANING[a.kind].every(isSame)
}

/**
 * Chooses at most one waiting reading of each text, and its place. Almost every notification is documented and takes
 * place 1 without a look at what is stored; the others are compared with it first. Calls `end` for those that are
 * refused or could not be compared.
 */
async function choosePlaces(
  sql: Sql,
  waiting: ReadonlySet<PlacedReading>,
  sent: ReadonlySet<string>,
  end: (one: PlacedReading, outcome: Outcome) => void,
): Promise<PlacedReading[]> {
  const wave = new Map<string, PlacedReading>()
  const compared: PlacedReading[] = []
  for (const one of waiting) {
    const { textHash, documented, requestOf } = one.notification
    if (sent.has(textHash) || !documented || requestOf !== undefined) compared.push(one)
    else if (!wave.has(textHash)) {
      one.place = 1
      wave.set(textHash, one)
    }
  }
  if (compared.length === 0) return [...wave.values()]
  try {
    for (const [at, found] of (await compareWithStored(sql, compared)).entries()) {
      const one = compared[at]
      if (!one || wave.has(one.notification.textHash)) continue
      // The text may be that of our own request, which is signed with the same secret.
      const documented = one.notification.documented && !found.isRequest
      one.place = choosePlace({ ...one.notification, documented }, found)
      // A notification that means what the documented one means is a delivery of it.
      one.notification = { ...one.notification, documented: documented || one.place === 1 }
      if (one.place === 0) end(one, RECUT)
      else wave.set(one.notification.textHash, one)
    }
  } catch (reason) {
    for (const one of compared) end(one, { status: 'rejected', reason })
  }
  return [...wave.values()]
}

export type Comparison = {
  /** The places of the text that are taken, and the first of them with this meaning. */
  taken: readonly number[]
  same: number | null
  /** It names a refund of ours, with its payment and amount. */
  isOwn: boolean
  /** The text is that of a REFUND request: the account has the payment that it would be for. */
  isRequest: boolean
}

/** @returns the place from 1 to 4; 0 if none is left */
export function choosePlace(
  { documented, code }: Pick<ReceivedNotification, 'documented' | 'code'>,
  { taken, same, isOwn }: Comparison,
): number {
  if (documented && !taken.includes(1)) return 1
  if (same !== null) return same
  if (!taken.includes(2)) return 2
  const own = code === undefined ? 4 : 3
  return isOwn && !taken.includes(own) ? own : 0
}

const COLUMNS = {
  ...pickColumns(ipnEvents, 'merchantCode', 'textHash', 'kind', 'amount', 'code', 'transactionId'),
  ...pickColumns(ipnEvents, 'orderId', 'merchantTxnId', 'currency', 'requestId', 'paymentId'),
  ...{ refundId: 'uuid', requestOf: 'text' },
}

/** The meaning of either kind: members of the other kind are null. */
const EITHER = ['kind', ...new Set([...MEANING.payment, ...MEANING.refund])].map(toSnakeCase)
const listMeaning = (from: string) => EITHER.map((column) => `${from}.${column}`).join(', ')

const OF_TEXT = byKey('e', ['merchant_code', 'text_hash'], 'k')
const OF_REFUND = byKey('r', ['merchant_code', 'refund_id'], 'k')
const OF_PAYMENT = byKey('p', ['merchant_code', 'payment_id'], 'n')

async function compareWithStored(
  sql: Sql,
  readings: readonly PlacedReading[],
): Promise<Comparison[]> {
  const rows = readings.map(({ notification: one }) => {
    const isOurs = one.kind === 'refund' && REQUEST_ID.test(one.requestId)
    return { ...one, refundId: isOurs ? one.requestId : undefined }
  })
  return await sql<Comparison[]>`
    select known.taken, known.same, r.is_own as "isOwn", p.is_request as "isRequest"
    from ${rowSet(sql, 'k', COLUMNS, rows)} cross join lateral (
      select coalesce(array_agg(reading), '{}') as taken,
        min(reading) filter (where (${sql.unsafe(listMeaning('e'))}) is not distinct from (${sql.unsafe(listMeaning('k'))}))
          as same
      from (select * from ipn_events as e where ${sql.unsafe(OF_TEXT)} offset 0) as e
    ) as known cross join lateral (
      select count(*) > 0 as is_own from (
        select payment_id, amount from refunds as r where ${sql.unsafe(OF_REFUND)} limit 1) as r
      where r.payment_id = k.payment_id and r.amount = k.amount
    ) as r cross join lateral (
      select count(*) > 0 as is_request from (
        select from (select k.merchant_code, k.request_of as payment_id) as n cross join lateral (
          select from payments as p where ${sql.unsafe(OF_PAYMENT)} limit 1) as p) as p
    ) as p
    order by k.ordinality`
}
