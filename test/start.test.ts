import { once } from 'node:events'
import { createServer } from 'node:net'
import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest'
import { withKey } from './support/api.ts'
import { createTestDatabase, type TestDatabase } from './support/database.ts'
import { runMain, settingsFor } from './support/process.ts'
import { KEY, startTestService } from './support/service.ts'
import { waitUntil } from './support/wait-until.ts'

let database: TestDatabase
beforeAll(async () => {
  database = await createTestDatabase()
})
afterAll(() => database.drop())

const GATEWAY = 'http://127.0.0.1:9'

/** A port that another program listens on. */
async function takePort(): Promise<number> {
  const other = createServer().listen(0, '127.0.0.1')
  onTestFinished(() => void other.close())
  await once(other, 'listening')
  const address = other.address()
  return typeof address === 'object' && address ? address.port : 0
}

async function runToEnd(env: Record<string, string>) {
  const { ended, output } = runMain(env)
  const code = await ended
  const { out, err } = output()
  return { code, out, lines: err.trimEnd().split('\n') }
}

it('every wrong or missing setting is one line that names it, and the exit code is 1', async () => {
  const { code, out, lines } = await runToEnd({
    DEMO: 'true',
    PORT: 'http',
    IPN_SIGNATURE: 'maybe',
    GATEWAY_TIMEOUT_MS: '0',
    DATABASE_URL: 'mysql://user:hunter2@db/ipn',
  })
  expect(code).toBe(1)
  expect(out).toBe('')
  expect(lines[0]).toBe('The settings are not usable:')
  const named = lines.slice(1).map((line) => /^ {2}([A-Z_]+) /.exec(line)?.[1])
  expect(named.sort()).toEqual(['DATABASE_URL', 'GATEWAY_TIMEOUT_MS', 'IPN_SIGNATURE', 'PORT'])
  expect(lines.every((line, at) => at === 0 || line.includes('for example'))).toBe(true)
  expect(lines.join('\n')).not.toContain('hunter2')
})

it('what production needs and is not set is named, one line each: the demo is never started instead', async () => {
  const { code, lines } = await runToEnd({ DATABASE_URL: database.url })
  expect(code).toBe(1)
  const named = lines.slice(1).map((line) => /^ {2}([A-Z_]+) /.exec(line)?.[1])
  expect(named.sort()).toEqual([
    'DATA_ENCRYPTION_KEY',
    'GATEWAY_BASE_URL',
    'GATEWAY_MERCHANT_CODE',
    'GATEWAY_SECRET',
  ])
})

it('the demo beside a gateway of your own, with a key of your own, says whose key it is and three lines to try', async () => {
  const { output, ended, child } = runMain({
    ...settingsFor(database.url, GATEWAY),
    DEMO: 'true',
    ROLE: 'web',
  })
  await waitUntil(() => output().out.includes('Ctrl-C'), { what: 'the banner' })
  const banner = output().out.slice(output().out.indexOf('IPN processor, demo mode'))
  expect(banner).toContain(`API key   ${KEY}   (the setting API_KEY)\n`)
  const tries = banner.split('\n').filter((line) => line.startsWith('  curl '))
  expect(tries).toHaveLength(3)
  for (const line of tries) {
    const [, url = ''] = /(http[^\s']+)'?$/.exec(line) ?? []
    expect((await fetch(url, withKey())).status).toBe(200)
  }
  child.kill('SIGTERM')
  expect(await ended).toBe(0)
})

it('a port in use is one readable line', async () => {
  const PORT = String(await takePort())
  const { code, lines } = await runToEnd({ ...settingsFor(database.url, GATEWAY), PORT })
  expect(code).toBe(1)
  expect(lines).toHaveLength(1)
  expect(lines[0]).toMatch(new RegExp(`${PORT}: another program listens there; .* set PORT`))
})

it('a start that fails on its port has claimed nothing and leaves no connection behind', async () => {
  const { sql } = database
  const countSessions = async () =>
    (await sql`select from pg_stat_activity where datname = current_database()`).length
  await sql`
    insert into transactions (merchant_code, transaction_id, due_at) values ('UFLIYL', 'T-1', now())`
  const before = await countSessions()
  const PORT = String(await takePort())
  await expect(startTestService(database, GATEWAY, { settings: { PORT } })).rejects.toThrow(
    'EADDRINUSE',
  )
  expect(await sql`select claimed, lease_id from transactions`).toEqual([
    { claimed: 0, lease_id: null },
  ])
  await waitUntil(async () => (await countSessions()) <= before, { what: 'its sessions end' })
})

it.each([
  ['nobody listens', 'port', '9', 'out of reach'],
  ['there is no such user', 'username', 'nobody_of_this_name', 'refuses the connection'],
  ['there is no such database', 'pathname', '/nowhere', 'refuses the connection'],
] as const)('an unusable database (%s) is one readable line', async (_, part, value, text) => {
  const url = new URL(database.url)
  url[part] = value
  const { code, lines } = await runToEnd(settingsFor(url.href, GATEWAY))
  expect(code).toBe(1)
  expect(lines).toHaveLength(1)
  expect(lines[0]).toContain(text)
  expect(lines[0]).not.toContain('postgres://')
})
