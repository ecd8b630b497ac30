import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:https'
import { createServer as createTcpServer } from 'node:net'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { compareClocks, presentFinding, runCheck } from '../../../src/cli/check.ts'
import type { Finding } from '../../../src/cli/check-hosts.ts'
import { openDataKeys } from '../../../src/db/data-keys.ts'
import { readPackageMajor } from '../../../src/platform/postgres/embedded-binaries.ts'
import { makeAuthority } from '../../support/certificates.ts'
import { createOwnDatabase, type OwnDatabase } from '../../support/database.ts'
import { makeFolder } from '../../support/embedded.ts'
import { listen } from '../../support/gateway.ts'
import { forgetNewest } from '../../support/migrations.ts'
import { runMain, settingsFor } from '../../support/process.ts'
import { useTestDatabase } from '../../support/use-started.ts'
import { waitUntil } from '../../support/wait-until.ts'
import { pretend, replaceSettings, WEAK_COMMITS } from '../pretended-settings.ts'

const database = useTestDatabase()

/** A gateway that is not there. */
const NOWHERE = 'http://127.0.0.1:9'

/** Listens as a gateway without TLS, and counts what it receives. */
async function openPlainGateway() {
  const seen = { connections: 0, bytes: 0 }
  const server = createTcpServer((socket) => {
    seen.connections += 1
    socket.on('data', (data) => {
      seen.bytes += data.length
    })
    socket.on('error', () => {})
  })
  return { url: `http://127.0.0.1:${await listen(server)}`, seen }
}

async function findings(env: Record<string, string>) {
  const { ok, checks } = await runCheck(env)
  const byName = (name: string) => checks.find((one) => one.name === name)
  return { ok, checks, byName, statuses: Object.fromEntries(checks.map((c) => [c.name, c.status])) }
}

const ALL_OK = {
  settings: 'ok',
  database: 'ok',
  schema: 'ok',
  restore: 'ok',
  key: 'ok',
  clock: 'ok',
  gateway: 'ok',
}

describe('--check', () => {
  it('passes an installation that can start, and sends the gateway nothing', async () => {
    const gateway = await openPlainGateway()
    const { ok, statuses, byName } = await findings(settingsFor(database.url, gateway.url))
    expect({ ok, statuses }).toEqual({ ok: true, statuses: ALL_OK })
    const { host } = new URL(database.url)
    expect(byName('database')?.detail).toMatch(new RegExp(`^PostgreSQL \\d+\\.\\d+ at ${host}$`))
    expect(byName('schema')?.detail).toMatch(/^\d{4}_/)
    expect(byName('gateway')?.detail).toContain('plain http')
    expect(gateway.seen).toEqual({ connections: 1, bytes: 0 })
  })

  it('reports every invalid setting, and checks nothing that depends on them', async () => {
    const { ok, checks } = await findings({ PORT: 'x', ROLE: 'y', GATEWAY_SECERT: 'hunter2' })
    expect([ok, checks.filter(({ status }) => status === 'ok')]).toEqual([false, []])
    const failed = checks.filter(({ status }) => status === 'failed')
    expect(failed.map(({ name, detail }) => `${name} ${detail.split(' ')[0]}`)).toEqual(
      expect.arrayContaining(['settings PORT', 'settings ROLE', 'settings GATEWAY_SECERT']),
    )
    expect(new Set(failed.map(({ name }) => name)).size).toBe(1)
  })

  it('writes nothing, and leaves no session behind', async () => {
    const empty = await createOwnDatabase({ empty: true })
    const gateway = await openPlainGateway()
    const { ok, byName } = await findings(settingsFor(empty.url, gateway.url))
    expect(ok).toBe(true)
    expect(byName('schema')?.detail).toBe(
      'the schema public holds no installation: the start makes one',
    )
    expect(byName('restore')?.detail).toBe('nothing is stored yet')
    expect(byName('key')?.detail).toContain('nothing is stored yet')
    const tables = await empty.sql`
      select from pg_class c join pg_namespace n on n.oid = relnamespace
      where nspname not like 'pg\\_%' and nspname <> 'information_schema'`
    expect(tables).toHaveLength(0)
    const listOthers = () => empty.sql`
      select from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()`
    // The server ends a session a moment after its connection was closed.
    await waitUntil(async () => (await listOthers()).length === 0, { what: 'no session is left' })
  })

  it.each([
    ['nothing listens', 'port', '9', 'is unreachable'],
    ['there is no socket', 'host', '%2Fnowhere', 'is unreachable'],
    ['there is no such user', 'username', 'nobody_of_this_name', 'refused the connection'],
    ['there is no such database', 'pathname', '/nowhere', 'refused the connection'],
  ] as const)(
    'reports an unusable database (%s) without its password',
    async (_, part, value, text) => {
      const url = new URL(database.url)
      url.password = 'hunter2'
      url[part] = value
      const gateway = await openPlainGateway()
      const { ok, byName, statuses, checks } = await findings(settingsFor(url.href, gateway.url))
      expect(ok).toBe(false)
      expect(statuses).toEqual({
        ...{ ...ALL_OK, database: 'failed' },
        ...{ schema: 'skipped', restore: 'skipped', key: 'skipped', clock: 'skipped' },
      })
      expect(byName('database')?.detail).toContain(text)
      expect(JSON.stringify(checks)).not.toContain('hunter2')
    },
  )

  it('reports a server that closes every connection, and does not wait for another one', async () => {
    const server = createTcpServer((socket) => socket.on('error', () => {}).destroy())
    const url = `postgres://u:hunter2@127.0.0.1:${await listen(server)}/x`
    const env = settingsFor(url, NOWHERE)
    const { checks } = await runCheck(env, { timeoutMs: 300 })
    const found = checks.find(({ name }) => name === 'database')
    expect(found).toMatchObject({ status: 'failed' })
    expect(found?.detail).toMatch(
      /^The database at DATABASE_URL (\(\S+\) did not answer|is unreachable) /,
    )
    const tls = await findings({ ...env, DATABASE_URL: `${url}?sslmode=require` })
    expect(tls.byName('database')?.detail).toMatch(
      / is unreachable \((CONNECTION_CLOSED|ECONNRESET)\): /,
    )
  })

  it.each<[string, (own: OwnDatabase) => Promise<unknown>, string, RegExp]>([
    [
      'accepts no writes',
      ({ sql, url }) =>
        sql.unsafe(
          `alter database ${new URL(url).pathname.slice(1)} set default_transaction_read_only = on`,
        ),
      'database',
      /^No server of DATABASE_URL accepts writes/,
    ],
    [
      'reports commits before they are durable',
      ({ sql }) => pretend(sql, WEAK_COMMITS),
      'database',
      /synchronous_commit is local in its sessions/,
    ],
    [
      'is older than the oldest supported version',
      ({ sql }) => pretend(sql, { server_version_num: '149999', server_version: '14.22 (Debian)' }),
      'database',
      /^PostgreSQL 14\.22 at .*: version 15 or newer is required$/,
    ],
    [
      'another version has migrated',
      async ({ sql }) => await sql`update migrations set hash = 'another'`,
      'schema',
      /^The database is one of another version: .*DATA_DIR/,
    ],
  ])('refuses a database that %s', async (_, spoil, name, detail) => {
    const own = await createOwnDatabase()
    await spoil(own)
    const { byName } = await findings(settingsFor(own.url, NOWHERE))
    expect(byName(name)).toMatchObject({
      status: 'failed',
      detail: expect.stringMatching(detail),
    })
  })

  it('accepts the oldest supported version', async () => {
    const own = await createOwnDatabase()
    await pretend(own.sql, { server_version_num: '150000' })
    const { byName } = await findings(settingsFor(own.url, NOWHERE))
    expect(byName('database')).toMatchObject({ status: 'ok' })
  })

  it('can write nothing, whatever a statement of it calls', async () => {
    const { sql, url } = await createOwnDatabase()
    await sql`create table written (x int)`
    const write = `if $1 = 'server_version_num' then insert into public.written values (1); end if`
    const body = `begin ${write}; return pg_catalog.true_setting($1); end`
    await replaceSettings(sql, body, 'plpgsql')
    const { byName } = await findings(settingsFor(url, NOWHERE))
    expect(byName('database')).toMatchObject({ status: 'failed' })
    // 25006 is read_only_sql_transaction: the session refused what its statement called.
    expect(byName('database')?.detail).toContain('(25006)')
    expect(await sql`select from written`).toHaveLength(0)
  })

  it('reports a time zone that the database does not know, as Node does', async () => {
    const env = settingsFor(database.url, NOWHERE)
    const { byName } = await findings({ ...env, CAPS_TIME_ZONE: 'VST' })
    expect(byName('database')).toMatchObject({ status: 'failed' })
  })

  it('counts the migrations that are pending', async () => {
    const older = await createOwnDatabase()
    await forgetNewest(older)
    const { byName } = await findings(settingsFor(older.url, NOWHERE))
    expect(byName('schema')?.detail).toMatch(/^1 migration is pending, up to \S+: the start/)
    const off = await findings({ ...settingsFor(older.url, NOWHERE), MIGRATE: 'off' })
    expect(off.byName('schema')).toMatchObject({ status: 'failed' })
    expect(off.byName('schema')?.detail).toMatch(/^1 migration is pending, .+ cli -- migrate/)
  })
})

describe('the encryption key', () => {
  const key = (fill: number) => Buffer.alloc(32, fill).toString('base64')

  it('has to open what is stored, and is not stored itself', async () => {
    const own = await createOwnDatabase()
    const env = settingsFor(own.url, NOWHERE)
    const read = () => own.sql`select purpose, id, wrapped from data_keys order by 1, 2`
    const check = async (more: Record<string, string>) =>
      (await findings({ ...env, ...more })).byName('key')
    expect(await check({ DATA_ENCRYPTION_KEY: key(1) })).toMatchObject({ status: 'ok' })
    expect(await read()).toHaveLength(0)
    await openDataKeys(own.sql, { current: key(1) })
    const stored = await read()
    expect((await check({ DATA_ENCRYPTION_KEY: key(1) }))?.detail).toContain('opens what is stored')
    const wrong = await check({ DATA_ENCRYPTION_KEY: key(2) })
    expect(wrong).toMatchObject({ status: 'failed' })
    expect(wrong?.detail).toMatch(/^DATA_ENCRYPTION_KEY is not the key that this database/)
    const rotated = { DATA_ENCRYPTION_KEY: key(2), DATA_ENCRYPTION_KEY_PREVIOUS: key(1) }
    expect(await check(rotated)).toMatchObject({ status: 'ok' })
    expect(await read()).toEqual(stored)
  })
})

describe('the clock', () => {
  const read = (databaseMs: number) =>
    compareClocks({ databaseMs, beforeMs: 1_000_000, afterMs: 1_000_500 })

  it('may be 30 s from that of the database', () => {
    expect(read(1_000_250)).toBe('as the database')
    expect(read(970_000)).toBe('this machine is 30.0 s ahead of the database')
    expect(read(1_030_500)).toBe('this machine is 30.0 s behind the database')
    expect(() => read(969_999)).toThrow(/^this machine is 30\.0 s ahead of the database, .+NTP/)
    expect(() => read(1_030_501)).toThrow(/^this machine is 30\.0 s behind the database, .+NTP/)
  })
})

describe("the gateway's TLS", () => {
  const authority = makeAuthority()
  async function serve(host: string) {
    let requests = 0
    const server = createServer(authority.issue(host), (_, response) => {
      requests += 1
      response.end()
    })
    return { url: `https://127.0.0.1:${await listen(server)}`, count: () => requests }
  }
  const check = async (url: string, more: Record<string, string> = {}) =>
    (await findings({ ...settingsFor('postgres://127.0.0.1:9/x', url), ...more })).byName('gateway')

  it('has to be trusted: a certificate of an unknown authority fails, with what to set', async () => {
    const gateway = await serve('127.0.0.1')
    const found = await check(gateway.url)
    expect(found).toMatchObject({ status: 'failed' })
    expect(found?.detail).toMatch(/certificate that is not trusted .+ NODE_EXTRA_CA_CERTS/)
    expect(gateway.count()).toBe(0)
  })

  it('passes with an authority that was added, for the name of the certificate alone', async () => {
    const NODE_EXTRA_CA_CERTS = join(makeFolder(), 'ca.pem')
    writeFileSync(NODE_EXTRA_CA_CERTS, authority.cert)
    const run = async (host: string) => {
      const gateway = await serve(host)
      const settings = settingsFor(database.url, gateway.url)
      const { ended, output } = runMain({ ...settings, NODE_EXTRA_CA_CERTS }, ['--check'])
      return { code: await ended, out: output().out, requests: gateway.count() }
    }
    const right = await run('127.0.0.1')
    expect(right).toMatchObject({ code: 0, requests: 0 })
    expect(right.out).toMatch(
      /^ok {4}gateway {3}TLSv1\.3 with 127\.0\.0\.1:\d+, certificate valid until/m,
    )
    const wrong = await run('gateway.example')
    expect(wrong).toMatchObject({ code: 1, requests: 0 })
    expect(wrong.out).toMatch(/^FAIL {2}gateway .+ has a certificate for another name/m)
  })

  it('is reported when nothing listens, or nothing responds', async () => {
    expect((await check('https://127.0.0.1:9'))?.detail).toMatch(
      /cannot be reached \(ECONNREFUSED\)/,
    )
    const silent = createTcpServer((socket) => socket.on('error', () => {}))
    const url = `https://127.0.0.1:${await listen(silent)}`
    const found = await check(url, { GATEWAY_TIMEOUT_MS: '100' })
    expect(found?.detail).toMatch(/did not complete a connection within 100 ms/)
  })

  it('is checked at the token URL as well, if that is elsewhere', async () => {
    const [gateway, tokens] = [await openPlainGateway(), await openPlainGateway()]
    const client = { GATEWAY_CLIENT_ID: 'shop', GATEWAY_CLIENT_SECRET: 'secret' }
    const env = { ...settingsFor(database.url, gateway.url), ...client }
    const { checks } = await findings({ ...env, GATEWAY_TOKEN_URL: `${tokens.url}/token` })
    expect(checks.filter(({ name }) => name === 'tokens')).toHaveLength(1)
    expect(tokens.seen.connections).toBe(1)
    expect((await findings(env)).checks.filter(({ name }) => name === 'tokens')).toEqual([])
  })
})

describe('demo mode', () => {
  it('is checked as far as it goes, and makes no database', async () => {
    const DATA_DIR = join(makeFolder(), 'data')
    const { ok, byName } = await findings({ DATA_DIR })
    expect(ok).toBe(true)
    expect(byName('settings')?.detail).toContain('demo mode')
    expect(byName('database')?.detail).toContain('the start creates an embedded PostgreSQL')
    expect(byName('gateway')?.detail).toContain('the demo starts the sandbox')
    expect(byName('key')?.detail).toBe('not checked: there is no database yet')
    expect(existsSync(DATA_DIR)).toBe(false)
  })
})

it('an embedded database that is not running is not checked, and that is said', async () => {
  const DATA_DIR = makeFolder()
  mkdirSync(join(DATA_DIR, 'postgres'))
  writeFileSync(join(DATA_DIR, 'postgres/PG_VERSION'), readPackageMajor())
  const { ok, byName } = await findings({ DATA_DIR })
  expect([ok, byName('key')]).toEqual([
    true,
    {
      name: 'key',
      status: 'skipped',
      detail:
        'not checked: the embedded database is not running; check again while the service runs',
    },
  ])
})

describe('the output', () => {
  it('is a line for each finding', () => {
    const detail = 'gateway.example\u001b[31m\nis down'
    expect(presentFinding({ name: 'gateway', status: 'failed', detail })).toBe(
      'FAIL  gateway   gateway.example [31m is down\n',
    )
    expect(presentFinding({ name: 'key', status: 'skipped', detail: 'not checked' })).toBe(
      'skip  key       not checked\n',
    )
  })

  it('comes as it is found: what waits for a silent host holds up no other line', async () => {
    const silent = createTcpServer((socket) => socket.on('error', () => {}))
    const host = `127.0.0.1:${await listen(silent)}`
    const gateway = await openPlainGateway()
    const shown: string[] = []
    const env = settingsFor(`postgres://u:hunter2@${host}/x`, gateway.url)
    const onFinding = (finding: Finding) => void shown.push(presentFinding(finding))
    await runCheck(env, { timeoutMs: 1_000, onFinding })
    expect(shown.map((line) => line.split(/ +/)[1])).toEqual([
      ...['settings', 'gateway', 'database', 'schema', 'restore', 'key', 'clock'],
    ])
    expect(shown[2]).toContain(`DATABASE_URL (${host}) did not answer within 1000 ms: `)
  })

  it('goes with exit code 0 or 1, and ends the program without a port', async () => {
    const gateway = await openPlainGateway()
    const env = { ...settingsFor(database.url, gateway.url), PORT: '9' }
    const passed = runMain(env, ['--check', '--json'])
    expect(await passed.ended).toBe(0)
    expect(JSON.parse(passed.output().out)).toMatchObject({ ok: true })
    expect(passed.output().err).toBe('')
    const failed = runMain({ ...env, GATEWAY_BASE_URL: 'http://127.0.0.1:9' }, ['--check'])
    expect(await failed.ended).toBe(1)
    expect(failed.output().out).toMatch(/^FAIL {2}gateway {3}127\.0\.0\.1:9 cannot be reached/m)
  })

  it('may be read in part, as by head: the check ends as it would', async () => {
    const gateway = await openPlainGateway()
    const read = runMain(settingsFor(database.url, gateway.url), ['--check'])
    read.child.stdout?.destroy()
    expect({ code: await read.ended, err: read.output().err }).toEqual({ code: 0, err: '' })
  })
})
