import { expect, it } from 'vitest'
import { listPeople } from '../../../src/access/people.ts'
import { findSession, signIn } from '../../../src/access/sessions.ts'
import { prepareAccess } from '../../../src/access/setting-keys.ts'
import { inviteDemoAdmin } from '../../../src/demo.ts'
import { createRateLimiter } from '../../../src/platform/concurrency/rate-limiter.ts'
import { createLog } from '../../../src/platform/telemetry/log.ts'
import { useTestDatabase } from '../../support/use-started.ts'

const database = useTestDatabase()

const use = (token: string) =>
  signIn(
    { sql: database.sql, rates: createRateLimiter(), log: createLog('silent') },
    { token, address: '192.0.2.1', userAgent: '', requestId: 'r' },
  )

const config = { API_KEY: undefined, API_KEY_GRACE_MS: 0, demo: false }
const retire = () => prepareAccess({ sql: database.sql, log: createLog('silent'), config })

async function invite(): Promise<string> {
  return (await inviteDemoAdmin(database.sql)).token
}

it("a restart of the demo makes a new link, and ends the earlier one's with its session", async () => {
  const opened = await use(await invite())
  if (opened.kind !== 'opened') throw new Error(opened.kind)
  const unused = await invite()
  const next = await invite()
  expect(await findSession(database.sql, opened.token)).toMatchObject({ isLive: false })
  expect((await use(unused)).kind).toBe('refused')
  expect((await use(next)).kind).toBe('opened')
  expect(await listPeople(database.sql)).toHaveLength(1)
})

it('outside demo mode its way in is closed, until a demo runs again', async () => {
  const opened = await use(await invite())
  if (opened.kind !== 'opened') throw new Error(opened.kind)
  const link = await invite()
  await retire()
  expect((await use(link)).kind).toBe('refused')
  expect(await findSession(database.sql, opened.token)).toBeUndefined()
  const again = await use(await invite())
  if (again.kind !== 'opened') throw new Error(again.kind)
  const session = await findSession(database.sql, again.token)
  expect(session).toMatchObject({ isLive: true, roles: ['admin'], person: { merchants: ['*'] } })
})

it('without a demo on this database there is nothing to end', async () => {
  await database.sql`delete from actors`
  await retire()
  expect(await listPeople(database.sql)).toEqual([])
})
