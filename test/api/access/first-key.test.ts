import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { rotateKey } from '../../../src/access/change-keys.ts'
import { ensureFirstKey, replaceDemoKey } from '../../../src/access/first-key.ts'
import { PRINCIPAL_SQL } from '../../../src/access/principal.ts'
import { FIRST_KEY_LOCK } from '../../../src/db/names.ts'
import { runInTransaction } from '../../../src/platform/postgres/transaction.ts'
import { type BorrowedDatabase, borrowDatabase } from '../../support/database.ts'
import { waitUntilBlocked, whileUncommitted } from '../../support/locks.ts'

const HOUR_MS = 3_600_000

let database: BorrowedDatabase
beforeAll(async () => {
  database = await borrowDatabase()
})
beforeEach(() => database.sql`delete from api_keys`)
afterAll(() => database.release())

const makeText = () => `text-of-the-setting-${randomUUID()}`
const start = (text: string, graceMs = HOUR_MS) => ensureFirstKey(database.sql, text, graceMs)

type Read = { id: string; principal: string; endsInS: number | null; live: boolean }

async function read(text: string): Promise<Read> {
  const { sql } = database
  const [row] = await sql<Read[]>`
    select id, ${sql.unsafe(PRINCIPAL_SQL)} as principal,
      extract(epoch from expires_at - now())::float8 as "endsInS",
      revoked_at is null and (expires_at is null or expires_at > now()) as live
    from api_keys as k where hash = sha256(${text}::bytea)`
  if (!row) throw new Error('there is no such key')
  return row
}

describe('another API_KEY than at the last start', () => {
  it('is the same principal, and its predecessor ends after the grace period', async () => {
    const [one, two, three] = [makeText(), makeText(), makeText()]
    for (const text of [one, two, three]) await start(text)
    const keys = [await read(one), await read(two), await read(three)]
    expect(new Set(keys.map(({ principal }) => principal)).size).toBe(1)
    expect(keys.map(({ live }) => live)).toEqual([true, true, true])
    expect(keys[2]?.endsInS).toBeNull()
    for (const { endsInS } of keys.slice(0, 2)) {
      expect(endsInS).toBeGreaterThan(0)
      expect(endsInS).toBeLessThanOrEqual(HOUR_MS / 1000)
    }
  })

  it('ends its predecessor at once without a grace period', async () => {
    const [one, two] = [makeText(), makeText()]
    await start(one)
    await start(two, 0)
    expect([(await read(one)).live, (await read(two)).live]).toEqual([false, true])
  })

  it('does not extend the grace period at the next starts', async () => {
    const [one, two] = [makeText(), makeText()]
    await start(one)
    await start(two, 1_000)
    await start(two)
    expect((await read(one)).endsInS).toBeLessThanOrEqual(1)
  })

  it('can be set back: the first one is valid again, and the other one ends', async () => {
    const [one, two] = [makeText(), makeText()]
    await start(one)
    await start(two, 0)
    await start(one, 0)
    const keys = [await read(one), await read(two)]
    expect(keys.map(({ live }) => live)).toEqual([true, false])
    expect(keys[1]?.principal).toBe(keys[0]?.principal)
    await start(makeText(), 0)
    expect((await read(one)).live).toBe(false)
  })

  it('started by several processes at once is stored once, each behind the other', async () => {
    const [one, two, three] = [makeText(), makeText(), makeText()]
    await start(one)
    await whileUncommitted(
      database,
      (held) => held`select pg_advisory_xact_lock(${FIRST_KEY_LOCK})`,
      async (commit) => {
        const starts = [start(two), start(two), start(three)]
        await waitUntilBlocked(database, 3)
        await commit()
        await Promise.all(starts)
      },
    )
    expect(await database.sql`select from api_keys`).toHaveLength(3)
    const keys = [await read(one), await read(two), await read(three)]
    expect(new Set(keys.map(({ principal }) => principal)).size).toBe(1)
  })

  it('ends no key of the command line, whatever its name, and none while its own is revoked', async () => {
    const [one, two, other] = [makeText(), makeText(), makeText()]
    await database.sql`
      insert into api_keys (name, hash, scopes, merchant_code)
      values ('first', sha256(${other}::bytea), '{ops}', '*')`
    await start(one)
    await start(two, 0)
    expect((await read(other)).live).toBe(true)
    expect((await read(other)).principal).not.toBe((await read(one)).principal)
    await database.sql`update api_keys set revoked_at = now() where hash = sha256(${one}::bytea)`
    await start(one, 0)
    expect([(await read(one)).live, (await read(two)).live]).toEqual([false, true])
  })

  it('after a rotation on the command line continues its chain, and ends the key that the rotation made', async () => {
    const [one, two] = [makeText(), makeText()]
    await start(one)
    const { id, principal } = await read(one)
    const rotation = await runInTransaction(database.sql, (tx) => rotateKey(tx, id, 0))
    if (rotation.kind !== 'rotated') throw new Error(rotation.kind)
    expect(await start(one)).toEqual([])
    expect((await read(one)).live).toBe(false)
    expect(await read(rotation.created.text)).toMatchObject({ live: true, endsInS: null })
    expect(await start(two, 0)).toMatchObject([{ id: rotation.created.id }])
    expect(await read(two)).toMatchObject({ principal, live: true })
    expect(await read(rotation.created.text)).toMatchObject({ principal, live: false })
  })

  it('never ends the successor that the command line made, while the old key still has its grace', async () => {
    const one = makeText()
    await start(one)
    const { id } = await read(one)
    const rotation = await runInTransaction(database.sql, (tx) => rotateKey(tx, id, 3_600))
    if (rotation.kind !== 'rotated') throw new Error(rotation.kind)
    expect(await start(one, 0)).toEqual([])
    expect(await read(rotation.created.text)).toMatchObject({ live: true, endsInS: null })
  })

  it('ends the key of a release that marked none', async () => {
    const [old, next] = [makeText(), makeText()]
    await database.sql`
      insert into api_keys (name, hash, scopes, merchant_code)
      values ('first', sha256(${old}::bytea), '{payments:read,refunds:read,refunds:write}', '*')`
    expect(await start(next, 0)).toMatchObject([{ name: 'first', endsAt: expect.any(String) }])
    expect([(await read(old)).live, (await read(next)).live]).toEqual([false, true])
    expect((await read(next)).principal).toBe((await read(old)).principal)
  })

  it('is reported with what ends, at every start until it has ended', async () => {
    const [one, two] = [makeText(), makeText()]
    expect(await start(one)).toEqual([])
    const { id } = await read(one)
    const first = await start(two)
    expect(first).toEqual([{ id, name: 'first', endsAt: expect.stringMatching(/^20.+Z$/) }])
    expect(await start(two)).toEqual(first)
    await database.sql`update api_keys set expires_at = now() where id = ${id}`
    expect(await start(two)).toEqual([])
  })
})

it('the key of the demo is the same principal in every run', async () => {
  const [one, two] = [makeText(), makeText()]
  await replaceDemoKey(database.sql, one)
  const { principal } = await read(one)
  await replaceDemoKey(database.sql, two)
  expect(await read(two)).toMatchObject({ principal, live: true })
  expect(await database.sql`select from api_keys`).toHaveLength(1)
})
