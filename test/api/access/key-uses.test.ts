import { randomUUID } from 'node:crypto'
import { expect, it } from 'vitest'
import { createKeyUses, FLUSH_EVERY_MS } from '../../../src/access/key-use.ts'
import { createLog } from '../../../src/platform/telemetry/log.ts'
import { whileUncommitted } from '../../support/locks.ts'
import { addKey } from '../../support/service.ts'
import { useTestDatabase } from '../../support/use-started.ts'
import { waitUntil } from '../../support/wait-until.ts'

const database = useTestDatabase()
const log = createLog('silent')

async function makeKey(): Promise<string> {
  const text = randomUUID()
  await addKey(database, text, ['payments:read'])
  const [row] = await database.sql<{ id: string }[]>`
    select id from actors where hash = sha256(${text}::bytea)`
  return row?.id ?? ''
}

type Recorded = { at: Date | null; from: string | null }
async function read(id: string): Promise<Recorded | undefined> {
  const [row] = await database.sql<{ at: string | null; from: string | null }[]>`
    select last_used_at::text as at, last_used_from as from from actors where id = ${id}`
  return row && { at: row.at === null ? null : new Date(row.at), from: row.from }
}

it('the first use is recorded, those of the next minute in one commit after it, whatever their number', async () => {
  let now = Date.parse('2026-11-23T10:00:00Z')
  let commits = 0
  const sql = new Proxy(database.sql, {
    get(target, name) {
      if (name === 'reserve') commits += 1
      return Reflect.get(target, name)
    },
  })
  const uses = createKeyUses(sql, log, () => now)
  const [one, two] = [await makeKey(), await makeKey()]
  uses.note(one, '192.0.2.1')
  await waitUntil(async () => (await read(one))?.from !== null, { what: 'the record' })
  for (let n = 0; n < 1_000; n += 1) uses.note(n % 2 ? one : two, '2001:db8:1:2:3::4')
  expect(commits).toBe(1)
  expect((await read(two))?.at).toBeNull()
  now += FLUSH_EVERY_MS
  uses.note(two, '198.51.100.7')
  await waitUntil(async () => (await read(two))?.from !== null, { what: 'the second record' })
  expect(commits).toBe(2)
  expect(await read(one)).toEqual({
    at: new Date('2026-11-23T10:00:00Z'),
    from: '2001:db8:1:2',
  })
  expect(await read(two)).toEqual({ at: new Date(now), from: '198.51.100.7' })
})

it('waits for no key that a decision has locked, and an older use never replaces a newer one', async () => {
  const id = await makeKey()
  const late = createKeyUses(database.sql, log, () => 2_000_000)
  const early = createKeyUses(database.sql, log, () => 1_000_000)
  // The first use is recorded at once, and nothing can wait for that.
  late.note(await makeKey(), '192.0.2.1')
  await whileUncommitted(
    database,
    (held) => held`select from actors where id = ${id} for share`,
    async (commit) => {
      late.note(id, '192.0.2.1')
      await late.flush()
      expect((await read(id))?.at).toBeNull()
      await commit()
    },
  )
  early.note(id, '192.0.2.2')
  await waitUntil(async () => (await read(id))?.at !== null, { what: 'the record' })
  const other = createKeyUses(database.sql, log, () => 500_000)
  other.note(id, '192.0.2.3')
  await other.flush()
  expect((await read(id))?.from).toBe('192.0.2.2')
})
