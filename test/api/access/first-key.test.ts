import { randomUUID } from 'node:crypto'
import { beforeEach, describe, expect, it } from 'vitest'
import { rotateKey } from '../../../src/access/key-changes.ts'
import { ensureFirstKey } from '../../../src/access/setting-keys.ts'
import { FIRST_KEY_LOCK } from '../../../src/db/names.ts'
import { createReads } from '../../../src/db/reads.ts'
import { replaceDemoKey } from '../../../src/demo.ts'
import { warnOfExpiry } from '../../../src/maintenance/housekeeping.ts'
import { runInTransaction } from '../../../src/platform/postgres/transaction.ts'
import { createLog } from '../../../src/platform/telemetry/log.ts'
import { waitUntilBlocked, whileUncommitted } from '../../support/locks.ts'
import { addKey } from '../../support/service.ts'
import { useTestDatabase } from '../../support/use-started.ts'

const HOUR_MS = 3_600_000

const database = useTestDatabase()
beforeEach(() => database.sql`delete from actors`)

const makeText = () => `text-of-the-setting-${randomUUID()}`
const start = (text: string, graceMs = HOUR_MS) =>
  ensureFirstKey({ db: database, log: createLog('silent') }, text, graceMs)

type Read = { id: string; principal: string; endsInS: number | null; live: boolean }

async function read(text: string): Promise<Read> {
  const { sql } = database
  const [row] = await sql<Read[]>`
    select id, principal,
      extract(epoch from expires_at - now())::float8 as "endsInS",
      ended_at is null and (expires_at is null or expires_at > now()) as live
    from actors as k where hash = sha256(${text}::bytea)`
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

  it('leaves alone a predecessor that is revoked meanwhile', async () => {
    const [one, two] = [makeText(), makeText()]
    await start(one)
    const { id } = await read(one)
    await whileUncommitted(
      database,
      (held) => held`update actors set ended_at = now() where id = ${id}`,
      async (commit) => {
        const left = start(two)
        await waitUntilBlocked(database)
        await commit()
        expect(await left).toEqual([])
      },
    )
    expect(await read(one)).toMatchObject({ live: false, endsInS: null })
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
      (held) => held`select pg_advisory_xact_lock(${held.unsafe(FIRST_KEY_LOCK)})`,
      async (commit) => {
        const starts = [start(two), start(two), start(three)]
        await waitUntilBlocked(database, 3)
        await commit()
        await Promise.all(starts)
      },
    )
    expect(await database.sql`select from actors`).toHaveLength(3)
    const keys = [await read(one), await read(two), await read(three)]
    expect(new Set(keys.map(({ principal }) => principal)).size).toBe(1)
  })

  it('ends no key of the command line, whatever its name, and none while its own is revoked', async () => {
    const [one, two, other] = [makeText(), makeText(), makeText()]
    await addKey(database, other, ['ops'])
    await database.sql`update actors set name = 'first' where hash = sha256(${other}::bytea)`
    await start(one)
    await start(two, 0)
    expect((await read(other)).live).toBe(true)
    expect((await read(other)).principal).not.toBe((await read(one)).principal)
    await database.sql`update actors set ended_at = now() where hash = sha256(${one}::bytea)`
    await start(one, 0)
    expect([(await read(one)).live, (await read(two)).live]).toEqual([false, true])
  })

  it('is not rotated: its key changes with the setting alone', async () => {
    const one = makeText()
    await start(one)
    const { id } = await read(one)
    expect(await runInTransaction(database.sql, (tx) => rotateKey(tx, id, 0))).toEqual({
      kind: 'of_setting',
    })
    expect(await read(one)).toMatchObject({ live: true, endsInS: null })
    expect(await database.sql`select from actors`).toHaveLength(1)
  })

  it('is refused if it is the text of another key, and no key ends', async () => {
    const [one, reader] = [makeText(), makeText()]
    await start(one)
    await addKey(database, reader, ['payments:read'])
    await expect(start(reader, 0)).rejects.toThrow(/^API_KEY is the text of the key .+openssl rand/)
    expect(await read(one)).toMatchObject({ live: true, endsInS: null })
  })

  it('is not warned of as a key that ends soon: its successor is there', async () => {
    for (const text of [makeText(), makeText()]) await start(text)
    const lines: string[] = []
    const log = createLog('info', { write: (line) => void lines.push(line) })
    const { sql, drizzle } = database
    const reads = createReads(database, 1)
    await warnOfExpiry({ db: { sql, drizzle, lookups: database, reads }, log })
    expect(lines).toEqual([])
  })

  it('is an entry of the audit log when it is stored or set again, and none while it stays', async () => {
    await database.sql`delete from audit_entries`
    const [one, two] = [makeText(), makeText()]
    for (const text of [one, one, two, two, one]) await start(text)
    const ids = [(await read(one)).id, (await read(two)).id]
    const entries = await database.sql<{ objectId: string }[]>`
      select key_id as "keyId", actor, operation, object_id as "objectId", outcome from audit_entries order by id`
    expect(entries.map(({ objectId }) => objectId)).toEqual([ids[0], ids[1], ids[0]])
    const same = { keyId: null, actor: 'settings', operation: 'set API_KEY', outcome: 'done' }
    expect(entries).toMatchObject([same, same, same])
  })

  it('is reported with what ends, at every start until it has ended', async () => {
    const [one, two] = [makeText(), makeText()]
    expect(await start(one)).toEqual([])
    const { id } = await read(one)
    const first = await start(two)
    expect(first).toEqual([{ id, name: 'first', endsAt: expect.stringMatching(/^20.+Z$/) }])
    expect(await start(two)).toEqual(first)
    await database.sql`update actors set expires_at = now() where id = ${id}`
    expect(await start(two)).toEqual([])
  })
})

it('the key of the demo is the same principal in every run', async () => {
  const [one, two] = [makeText(), makeText()]
  await replaceDemoKey(database.sql, one)
  const { principal } = await read(one)
  await replaceDemoKey(database.sql, two)
  expect(await read(two)).toMatchObject({ principal, live: true })
  expect(await database.sql`select from actors`).toHaveLength(1)
})
