import { randomUUID } from 'node:crypto'
import { beforeEach, expect, it } from 'vitest'
import { rotateKey } from '../../../src/access/key-changes.ts'
import { findKeys, hashKey } from '../../../src/access/keys.ts'
import { listPeople } from '../../../src/access/people.ts'
import { findSession, signIn } from '../../../src/access/sessions.ts'
import { DEMO_ADMIN, prepareAccess } from '../../../src/access/setting-keys.ts'
import { inviteDemoAdmin, replaceDemoKey } from '../../../src/demo.ts'
import { createRateLimiter } from '../../../src/platform/concurrency/rate-limiter.ts'
import { runInTransaction } from '../../../src/platform/postgres/transaction.ts'
import { createLog } from '../../../src/platform/telemetry/log.ts'
import { addKey } from '../../support/service.ts'
import { useTestDatabase } from '../../support/use-started.ts'

const database = useTestDatabase()
beforeEach(() => database.sql`delete from actors`)

/** Starts with these settings. @returns the lines of the log, without those of the audit log */
async function start(settings: { API_KEY?: string; demo?: boolean; graceMs?: number }) {
  const lines: string[] = []
  const { API_KEY, demo = false, graceMs = 3_600_000 } = settings
  await prepareAccess({
    db: database,
    log: createLog('info', { write: (line) => void lines.push(line) }),
    config: { API_KEY, API_KEY_GRACE_MS: graceMs, demo },
  })
  return lines.filter((line) => !line.includes('audit entry'))
}

const isLive = async (text: string) => {
  const [found] = await findKeys(database.sql, [hashKey(text).toString('hex')])
  return found?.status === 'fulfilled' && found.value !== undefined
}

const use = (token: string) =>
  signIn(
    { db: database, rates: createRateLimiter(), log: createLog('silent') },
    { token, address: '192.0.2.1', userAgent: '', requestId: 'r' },
  )

it("a restart of the demo makes a new link, and ends the earlier one's with its session", async () => {
  const opened = await use((await inviteDemoAdmin(database.sql)).token)
  if (opened.kind !== 'opened') throw new Error(opened.kind)
  const unused = await inviteDemoAdmin(database.sql)
  const next = await inviteDemoAdmin(database.sql)
  expect(await findSession(database.sql, opened.token)).toMatchObject({ isLive: false })
  expect((await use(unused.token)).kind).toBe('refused')
  expect((await use(next.token)).kind).toBe('opened')
  expect(await listPeople(database.sql)).toHaveLength(1)
})

it('a start that is no demo ends the demo: its key, what it was rotated to, its admin and links; and says so once', async () => {
  const [key, other] = [randomUUID(), randomUUID()]
  await replaceDemoKey(database.sql, key)
  await addKey(database, other, ['ops'])
  const link = await inviteDemoAdmin(database.sql)
  const [row] = await database.sql<{ id: string }[]>`select id from actors where name = 'demo'`
  const rotated = await runInTransaction(database.sql, (tx) => rotateKey(tx, row?.id ?? '', 3_600))
  if (rotated.kind !== 'rotated') throw new Error(rotated.kind)
  expect(await start({ demo: true })).toEqual([])
  expect([await isLive(key), await isLive(rotated.created.text)]).toEqual([true, true])
  const [line, ...more] = await start({})
  expect(more).toEqual([])
  expect(line).toContain('a demo ran on this database before')
  expect(line).toContain(row?.id)
  expect([await isLive(key), await isLive(rotated.created.text)]).toEqual([false, false])
  expect(await isLive(other)).toBe(true)
  expect((await use(link.token)).kind).toBe('refused')
  const entries = await database.sql<{ objectId: string }[]>`
    select object_id as "objectId" from audit_entries
    where actor = 'settings' and operation = 'end the demo' order by id`
  const ofDemo = [DEMO_ADMIN, row?.id, rotated.created.id].sort()
  expect(entries.map(({ objectId }) => objectId).sort()).toEqual(ofDemo)
  expect(await start({})).toEqual([])
  const again = randomUUID()
  await replaceDemoKey(database.sql, again)
  expect(await isLive(again)).toBe(true)
  const admin = await use((await inviteDemoAdmin(database.sql)).token)
  if (admin.kind !== 'opened') throw new Error(admin.kind)
  const session = await findSession(database.sql, admin.token)
  expect(session).toMatchObject({ isLive: true, roles: ['admin'], person: { merchants: ['*'] } })
})

it('a changed API_KEY is said at start, with what ends it at once; an unset one with what is left', async () => {
  const [one, two] = [`one-${randomUUID()}`, `two-${randomUUID()}`]
  expect(await start({ API_KEY: one })).toEqual([])
  const [line, ...more] = await start({ API_KEY: two })
  expect(more).toEqual([])
  expect(line).toContain('keys revoke <id>')
  expect(line).toMatch(/"keyIds":\["[\da-f-]{36}"\],"endsAt":"20/)
  expect(line).not.toContain(one)
  await start({ API_KEY: two, graceMs: 0 })
  expect([await isLive(one), await isLive(two)]).toEqual([false, true])
  const [left, ...others] = await start({})
  expect(others).toEqual([])
  expect(left).toContain('API_KEY is not set, but the key of its last text is still valid')
})

it('a start with the text of a revoked key says so', async () => {
  const API_KEY = randomUUID()
  expect(await start({ API_KEY })).toEqual([])
  await database.sql`update actors set ended_at = now()`
  expect(await start({ API_KEY })).toEqual([expect.stringContaining('key that was revoked')])
})
