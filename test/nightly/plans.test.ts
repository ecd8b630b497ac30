import { randomUUID } from 'node:crypto'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createReads } from '../../src/db/reads.ts'
import { generateSecret, placeSecret } from '../../src/webhooks/send.ts'
import { type MeasuredConnection, measureConnection } from '../support/buffers.ts'
import { fillRows } from '../support/fill.ts'
import { MERCHANT, type Rig, startRig } from '../support/service.ts'
import type { HotPath } from './plans/reads.ts'
import { ACCESS, HOT_PATHS } from './plans/statements.ts'

/** The endpoints, in the order in which they were registered. */
const ENDPOINTS = [randomUUID(), randomUUID()] as const

const FULL = 20_000
const COUNTS = 20

let rig: Rig
let connection: MeasuredConnection
beforeEach(async () => {
  rig = await startRig({ settings: { ROLE: 'web', WEBHOOK_ALLOW_PRIVATE: 'true' } })
  const { sql } = rig.database
  // Each test decides what the planner knows.
  const tables = await sql`select tablename as name from pg_tables where schemaname = 'public'`
  for (const { name } of tables)
    await sql`alter table ${sql(name)} set (autovacuum_enabled = false)`
  await sql`
    insert into actors (id, kind, name, folded_name, chain_id, hash, scopes, merchants)
    values (${ACCESS.id}, 'key', ${ACCESS.name}, ${ACCESS.name}, ${ACCESS.id}, sha256('plans'), ${[...ACCESS.scopes]}, '{*}')`
  // The first has retries waiting, the second the feed.
  const encrypt = (id: string) =>
    rig.service.ctx.encryption.encrypt(generateSecret(), placeSecret(id))
  const [first, second] = [encrypt(ENDPOINTS[0]), encrypt(ENDPOINTS[1])]
  await sql`
    insert into webhook_endpoints (id, key_chain_id, merchant_code, url, types, api_version, secret, cursor, due_at, created_at)
    select id, ${ACCESS.id}::uuid, ${MERCHANT.merchantCode}, 'http://127.0.0.1:9/', '{payment.created,payment.updated}', '2026-11',
      case place when 1 then ${first}::bytea else ${second}::bytea end,
      case place when 1 then 1000000000 else 0 end,
      case place when 1 then 'infinity' else now() end, to_timestamp(place)
    from unnest(${[...ENDPOINTS]}::uuid[]) with ordinality as e (id, place)`
  connection = measureConnection(rig.database)
  // The driver asks for the types first.
  await connection.sql`select 1`
})
afterEach(async () => {
  await connection.close()
  await rig.stop()
})

/** Runs every hot path and returns those that touched more than they may. */
async function measure(paths: readonly HotPath[] = HOT_PATHS): Promise<string[]> {
  const exceeded: string[] = []
  for (const path of paths) {
    const [name, rows, most] = path
    const { buffers, worst } = await countLeast(path)
    if (buffers <= most * rows) continue
    const perRow = Math.round(buffers / rows)
    exceeded.push(`${name}: ${perRow} a row, ${worst.buffers} of them by ${worst.statement.trim()}`)
  }
  return exceeded
}

/**
 * The least of several counts: definitions that other sessions of the server change make this one forget its
 * catalogs, which it then reads along with the rows. What the path itself reads is in every count.
 */
async function countLeast(path: HotPath) {
  const [, rows, most] = path
  let least = await countBuffers(path)
  for (let n = 1; n < COUNTS && least.buffers > most * rows; n += 1) {
    const next = await countBuffers(path)
    if (next.buffers < least.buffers) least = next
  }
  return least
}

async function countBuffers([, , , run, before]: HotPath) {
  await before?.(rig.database)
  connection.takeTouched()
  const db = { ...connection, lookups: connection, reads: createReads(connection, 1) }
  await run({ ...rig.service.ctx, db })
  const touched = connection.takeTouched()
  return {
    buffers: touched.reduce((sum, one) => sum + one.buffers, 0),
    worst: touched.reduce((a, b) => (b.buffers > a.buffers ? b : a), { buffers: 0, statement: '' }),
  }
}

describe('what a hot path reads depends on its rows alone', () => {
  it('on a database that was never analysed', async () => {
    await fillRows(rig.database, 1, FULL)
    expect(await measure()).toEqual([])
  })

  it('with plans made on an empty database, never analysed', async () => {
    // Some find nothing to work on.
    for (const path of HOT_PATHS) await measure([path]).catch(() => {})
    await fillRows(rig.database, 1, FULL)
    expect(await measure()).toEqual([])
  })

  it('with plans made for a few rows, never analysed', async () => {
    await fillRows(rig.database, 1, 200)
    await measure()
    await fillRows(rig.database, 201, FULL)
    expect(await measure()).toEqual([])
  })

  it('on a database analysed at ten rows and then filled', async () => {
    await fillRows(rig.database, 1, 10)
    await rig.database.sql`analyze`
    await fillRows(rig.database, 11, FULL)
    expect(await measure()).toEqual([])
  })

  it('analysed while everything is due', async () => {
    await fillRows(rig.database, 1, FULL)
    await rig.database.sql`analyze`
    expect(await measure()).toEqual([])
  })
})
