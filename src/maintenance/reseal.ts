import { resealEvent } from '../events/event.ts'
import type { Encryption, Place } from '../platform/crypto/encryption.ts'
import type { Sql } from '../platform/postgres/types.ts'
import { placeReceiver } from '../refunds/receiver.ts'
import { placeSecret } from '../webhooks/send.ts'

type Resealed = { receivers: number; endpoints: number; events: number; unreadable: number }

/**
 * Encrypts receivers, webhook secrets and the receivers in events again with the active key, until nothing is left
 * under an older one. The service may run meanwhile: a value is replaced only if it is still the one that was read. A
 * value that no key can decrypt stays as it is and is counted as `unreadable`.
 */
export async function resealData(sql: Sql, encryption: Encryption, batch = 200): Promise<Resealed> {
  const done: Resealed = { receivers: 0, endpoints: 0, events: 0, unreadable: 0 }
  const pass = { sql, encryption, batch, done }
  for (let isLeft = true; isLeft; ) {
    const before = done.receivers + done.endpoints + done.events
    done.unreadable = 0
    for (const sealed of SEALED) await resealColumn(pass, sealed)
    // This order matters: the publisher moves events from the first table to the end of the second.
    await resealEvents(pass, 'event_outbox')
    await resealEvents(pass, 'events')
    // Processes that were writing when the key became active may have used the one before it.
    isLeft = done.receivers + done.endpoints + done.events > before
  }
  return done
}

type Pass = { sql: Sql; encryption: Encryption; batch: number; done: Resealed }

/** An encrypted column. A merchant and a UUID are the key of its rows. */
type Sealed = {
  table: string
  key: string
  column: string
  counted: 'receivers' | 'endpoints'
  place: (id: string) => Place
}

const ofRefunds = (column: 'receiver' | 'receiver_shown'): Sealed => ({
  ...{ table: 'refunds', key: 'refund_id', column, counted: 'receivers' },
  place: (id) => placeReceiver(column, id),
})
const ofEndpoints = (column: 'secret' | 'previous_secret'): Sealed => ({
  ...{ table: 'webhook_endpoints', key: 'id', column, counted: 'endpoints' },
  place: (id) => placeSecret(id, column),
})
const SEALED = [
  ...[ofRefunds('receiver'), ofRefunds('receiver_shown')],
  ...[ofEndpoints('secret'), ofEndpoints('previous_secret')],
]

async function resealColumn(pass: Pass, sealed: Sealed): Promise<void> {
  const { sql, encryption, batch, done } = pass
  const { table, key, column, counted, place } = sealed
  const head = encryption.getActiveHead()
  for (let last = { merchantCode: '', id: '00000000-0000-0000-0000-000000000000' }; ; ) {
    const rows = await sql<(typeof last & { before: Buffer })[]>`
      select merchant_code as "merchantCode", ${sql(key)} as id, ${sql(column)} as before from ${sql(table)}
      where (merchant_code, ${sql(key)}) > (${last.merchantCode}, ${last.id}::uuid)
        and substring(${sql(column)} from 1 for ${head.length}) <> ${head}
      order by merchant_code, ${sql(key)} limit ${batch}`
    for (const { merchantCode, id, before } of rows) {
      const after = reseal(pass, before, place(id))
      if (!after) continue
      const written = await sql`
        update ${sql(table)} set ${sql(column)} = ${after}
        where merchant_code = ${merchantCode} and ${sql(key)} = ${id} and ${sql(column)} = ${before}`
      done[counted] += written.count
    }
    const end = rows.at(-1)
    if (!end) return
    last = end
  }
}

async function resealEvents(
  { sql, encryption, batch, done }: Pass,
  table: 'event_outbox' | 'events',
): Promise<void> {
  for (let last = 0; ; ) {
    const rows = await sql<{ id: number; data: string }[]>`
      select id, data::text as data from ${sql(table)}
      where id > ${last} and type like 'refund.%' order by id limit ${batch}`
    for (const { id, data } of rows) {
      const after = resealEvent(encryption, data)
      if (after === null) done.unreadable += 1
      if (!after) continue
      const written = await sql`
        update ${sql(table)} set data = ${after}::text::json where id = ${id} and data::text = ${data}`
      done.events += written.count
    }
    const end = rows.at(-1)
    if (!end) return
    last = end.id
  }
}

function reseal({ encryption, done }: Pass, before: Buffer, place: Place): Buffer | undefined {
  try {
    return encryption.encrypt(encryption.decrypt(before, place), place)
  } catch {
    done.unreadable += 1
    return undefined
  }
}
