import { resealEvent } from '../events/event.ts'
import type { Encryption, Place } from '../platform/crypto/encryption.ts'
import type { Sql } from '../platform/postgres/types.ts'
import { placeReceiver } from '../refunds/receiver.ts'
import { placePreviousSecret, placeSecret } from '../webhooks/secrets.ts'

/** How many values were encrypted again, and how many cannot be read with any key. */
export type Resealed = { receivers: number; endpoints: number; events: number; unreadable: number }

const BATCH = 200

/**
 * Encrypts receivers, webhook secrets and the receivers in events again, with the active key, while the service runs.
 * Each value is replaced only if it is still the one that was read, so nothing that was erased or changed meanwhile
 * comes back. What is encrypted with the active key already is skipped: an interrupted run is continued by another.
 * Values that no key can decrypt stay as they are, and are counted.
 * @param batch how many rows are read at once
 */
export async function resealData(
  sql: Sql,
  encryption: Encryption,
  batch: number = BATCH,
): Promise<Resealed> {
  const done: Resealed = { receivers: 0, endpoints: 0, events: 0, unreadable: 0 }
  await resealReceivers(sql, encryption, batch, done)
  await resealSecrets(sql, encryption, done)
  // The publisher moves events from the first table to the end of the second.
  await resealEvents(sql, encryption, batch, { table: 'event_outbox', done })
  await resealEvents(sql, encryption, batch, { table: 'events', done })
  return done
}

type RefundRow = {
  merchantCode: string
  refundId: string
  receiver: Buffer | null
  receiverShown: Buffer | null
}

async function resealReceivers(
  sql: Sql,
  encryption: Encryption,
  batch: number,
  done: Resealed,
): Promise<void> {
  const { activeHead: head } = encryption
  const isOld = (column: string) =>
    sql`substring(${sql(column)} from 1 for ${head.length}) <> ${head}`
  for (let last = { merchantCode: '', refundId: '00000000-0000-0000-0000-000000000000' }; ; ) {
    const rows = await sql<RefundRow[]>`
      select merchant_code as "merchantCode", refund_id as "refundId", receiver,
        receiver_shown as "receiverShown"
      from refunds
      where (merchant_code, refund_id) > (${last.merchantCode}, ${last.refundId}::uuid)
        and (${isOld('receiver')} or ${isOld('receiver_shown')})
      order by merchant_code, refund_id limit ${batch}`
    for (const row of rows) await resealRefund(sql, encryption, row, done)
    const end = rows.at(-1)
    if (!end) return
    last = end
  }
}

async function resealRefund(
  sql: Sql,
  encryption: Encryption,
  { merchantCode, refundId, receiver, receiverShown }: RefundRow,
  done: Resealed,
): Promise<void> {
  const values = [
    ['receiver', receiver],
    ['receiver_shown', receiverShown],
  ] as const
  for (const [column, before] of values) {
    const after = before && reseal(encryption, before, placeReceiver(column, refundId))
    if (after === null || after === 'current') continue
    if (after === 'unreadable') {
      done.unreadable += 1
      continue
    }
    const written = await sql`
      update refunds set ${sql(column)} = ${after}
      where merchant_code = ${merchantCode} and refund_id = ${refundId} and ${sql(column)} = ${before}`
    done.receivers += written.count
  }
}

async function resealSecrets(sql: Sql, encryption: Encryption, done: Resealed): Promise<void> {
  const rows = await sql<{ id: string; secret: Buffer; previousSecret: Buffer | null }[]>`
    select id, secret, previous_secret as "previousSecret" from webhook_endpoints order by id`
  const values = rows.flatMap(({ id, secret, previousSecret }) => [
    { id, column: 'secret', before: secret, place: placeSecret(id) },
    ...(previousSecret
      ? [
          {
            id,
            column: 'previous_secret',
            before: previousSecret,
            place: placePreviousSecret(id),
          },
        ]
      : []),
  ])
  for (const { id, column, before, place } of values) {
    const after = reseal(encryption, before, place)
    if (after === 'current') continue
    if (after === 'unreadable') {
      done.unreadable += 1
      continue
    }
    const written = await sql`
      update webhook_endpoints set ${sql(column)} = ${after} where id = ${id} and ${sql(column)} = ${before}`
    done.endpoints += written.count
  }
}

async function resealEvents(
  sql: Sql,
  encryption: Encryption,
  batch: number,
  { table, done }: { table: 'event_outbox' | 'events'; done: Resealed },
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

function reseal(
  encryption: Encryption,
  before: Buffer,
  place: Place,
): Buffer | 'current' | 'unreadable' {
  const { activeHead } = encryption
  if (before.subarray(0, activeHead.length).equals(activeHead)) return 'current'
  try {
    return encryption.encrypt(encryption.decrypt(before, place), place)
  } catch {
    return 'unreadable'
  }
}
