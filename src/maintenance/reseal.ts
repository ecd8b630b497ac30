import { resealEvent } from '../events/event.ts'
import type { Encryption, Place } from '../platform/crypto/encryption.ts'
import type { Sql } from '../platform/postgres/types.ts'
import { placeReceiver } from '../refunds/receiver.ts'
import { placeSecret } from '../webhooks/send.ts'

/** How many values were encrypted again, and how many cannot be read with any key. */
export type Resealed = { receivers: number; endpoints: number; events: number; unreadable: number }

const BATCH = 200

/**
 * Encrypts receivers, webhook secrets and the receivers in events again, with the key in use, while the service runs, until
 * nothing is left under an older key. Each value is replaced only if it is still the one that was read, so nothing that was
 * erased or changed meanwhile comes back. Values that no key can decrypt stay as they are, and are counted.
 * @param batch how many rows are read at once
 */
export async function resealData(
  sql: Sql,
  encryption: Encryption,
  batch: number = BATCH,
): Promise<Resealed> {
  const done: Resealed = { receivers: 0, endpoints: 0, events: 0, unreadable: 0 }
  const pass = { sql, encryption, batch, done }
  for (let isLeft = true; isLeft; ) {
    const before = done.receivers + done.endpoints + done.events
    done.unreadable = 0
    await resealReceivers(pass)
    await resealSecrets(pass)
    // The publisher moves events from the first table to the end of the second.
    await resealEvents(pass, 'event_outbox')
    await resealEvents(pass, 'events')
    // Processes that were writing as the key came into use may have written under the one before.
    isLeft = done.receivers + done.endpoints + done.events > before
  }
  return done
}

type Pass = { sql: Sql; encryption: Encryption; batch: number; done: Resealed }

async function resealReceivers(pass: Pass): Promise<void> {
  const { sql, encryption, batch, done } = pass
  const head = encryption.getActiveHead()
  const isOld = (column: string) =>
    sql`substring(${sql(column)} from 1 for ${head.length}) <> ${head}`
  type Row = Record<'receiver' | 'receiver_shown', Buffer | null>
  for (let last = { merchantCode: '', refundId: '00000000-0000-0000-0000-000000000000' }; ; ) {
    const rows = await sql<(Row & typeof last)[]>`
      select merchant_code as "merchantCode", refund_id as "refundId", receiver, receiver_shown
      from refunds
      where (merchant_code, refund_id) > (${last.merchantCode}, ${last.refundId}::uuid)
        and (${isOld('receiver')} or ${isOld('receiver_shown')})
      order by merchant_code, refund_id limit ${batch}`
    for (const { merchantCode, refundId, ...columns } of rows) {
      for (const column of ['receiver', 'receiver_shown'] as const) {
        const before = columns[column]
        const after = reseal(pass, before, placeReceiver(column, refundId))
        if (!after) continue
        const written = await sql`
          update refunds set ${sql(column)} = ${after}
          where merchant_code = ${merchantCode} and refund_id = ${refundId} and ${sql(column)} = ${before}`
        done.receivers += written.count
      }
    }
    const end = rows.at(-1)
    if (!end) return
    last = end
  }
}

async function resealSecrets(pass: Pass): Promise<void> {
  const { sql, done } = pass
  const rows = await sql<{ id: string; secret: Buffer; previous_secret: Buffer | null }[]>`
    select id, secret, previous_secret from webhook_endpoints order by id`
  for (const { id, ...columns } of rows) {
    for (const column of ['secret', 'previous_secret'] as const) {
      const before = columns[column]
      const after = reseal(pass, before, placeSecret(id, column))
      if (!after) continue
      const written = await sql`
        update webhook_endpoints set ${sql(column)} = ${after} where id = ${id} and ${sql(column)} = ${before}`
      done.endpoints += written.count
    }
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

/** @returns undefined for nothing, for what is under the key in use already, and for what no key can decrypt */
function reseal(
  { encryption, done }: Pass,
  before: Buffer | null,
  place: Place,
): Buffer | undefined {
  const head = encryption.getActiveHead()
  if (!before || before.subarray(0, head.length).equals(head)) return undefined
  try {
    return encryption.encrypt(encryption.decrypt(before, place), place)
  } catch {
    done.unreadable += 1
    return undefined
  }
}
