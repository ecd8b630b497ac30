import { mkdirSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:https'
import { join } from 'node:path'
import { beforeAll, expect, it, onTestFinished } from 'vitest'
import { loadMigrations } from '../../../src/db/migration-state.ts'
import { readPackageMajor } from '../../../src/platform/postgres/embedded-binaries.ts'
import { seedGone } from '../../support/api.ts'
import { makeAuthority } from '../../support/certificates.ts'
import { Report, runCli, spawnCli } from '../../support/cli.ts'
import { startDatabaseProxy } from '../../support/database-proxy.ts'
import { makeFolder } from '../../support/embedded.ts'
import { listen } from '../../support/gateway.ts'
import { forgetNewest } from '../../support/migrations.ts'
import { createMessageReader } from '../../support/postgres-wire.ts'
import { settingsFor } from '../../support/process.ts'
import { MERCHANT } from '../../support/service.ts'
import { useRig } from '../../support/use-started.ts'

const rig = useRig()

/** The settings of a healthy installation beside the rig's database and gateway. */
let healthy: Record<string, string>
beforeAll(() => {
  healthy = settingsFor(rig.database.url, rig.sandbox.url)
})

async function examine(changed: Record<string, string> = {}) {
  const { code, out } = await runCli(['doctor', '--json'], { ...healthy, ...changed })
  const { ok, findings } = Report.parse(JSON.parse(out))
  expect(code).toBe(ok ? 0 : 1)
  for (const { id, severity, finding, action } of findings) {
    expect({ id, finding }).toEqual({ id, finding: expect.not.stringContaining('\n') })
    if (severity !== 'info') expect({ id, action }).toEqual({ id, action: expect.any(String) })
  }
  // The tests' server saves itself the disk.
  return findings.filter(
    ({ finding }) => !/^(fsync|full_page_writes|autovacuum) is off/.test(finding),
  )
}

const sick = async (changed?: Record<string, string>) =>
  (await examine(changed)).filter(({ severity }) => severity !== 'info')

it('finds nothing wrong with a healthy installation, and names everything that was examined', async () => {
  const findings = await examine()
  expect(findings.filter(({ severity }) => severity !== 'info')).toEqual([])
  const ids = findings.map(({ id }) => id)
  expect(ids).toEqual([...new Set(ids)])
  const all = ['settings', 'database', 'schema', 'key', 'clock', 'gateway', 'wakeups', 'indexes']
  expect(ids).toEqual(expect.arrayContaining(all))
  const { out } = await runCli(['doctor'], healthy)
  expect(out).toMatch(/^ok {4}settings /m)
  expect(out).toMatch(/^\d+ findings: \d+ errors, \d+ warnings\n$/m)
})

it('names a setting that is wrong, and examines nothing else', async () => {
  expect(await sick({ RETENTION_DAYS: 'never' })).toEqual([
    expect.objectContaining({ id: 'settings', severity: 'error' }),
  ])
})

it('names a database that is not there, and an encryption key of another one', async () => {
  const [absent] = await sick({ DATABASE_URL: 'postgres://nobody@127.0.0.1:1/none' })
  expect(absent).toMatchObject({ id: 'database', severity: 'error' })
  expect(absent?.finding).toContain('unreachable')
  const [key] = await sick({ DATA_ENCRYPTION_KEY: Buffer.alloc(32, 9).toString('base64') })
  expect(key).toMatchObject({ id: 'key', severity: 'error' })
})

it('names a schema that is older, and the command for it, and examines nothing else', async () => {
  onTestFinished(await forgetNewest(rig.database))
  const before = (await loadMigrations()).at(-2)
  expect(await sick()).toEqual([
    {
      id: 'schema',
      severity: 'warning',
      finding: `${before?.name}: older than this version`,
      action: expect.stringMatching(/^run .*cli.* migrate" or start the service, and/),
    },
  ])
  expect(await sick({ MIGRATE: 'off' })).toEqual([
    {
      id: 'schema',
      severity: 'error',
      finding: expect.stringMatching(/^1 migration is pending, .* MIGRATE is off$/),
      action: expect.stringMatching(/^run .*cli.* migrate/),
    },
  ])
})

it('names a schema that holds no installation, and examines nothing else', async () => {
  const action = expect.stringMatching(/^set DATABASE_SCHEMA to one that .* cells list" names, or/)
  const finding = 'the schema mistyped holds no installation'
  expect(await sick({ DATABASE_SCHEMA: 'mistyped' })).toEqual([
    { id: 'schema', severity: 'error', finding, action },
  ])
  expect(await sick({ DATABASE_SCHEMA: 'mistyped', MIGRATE: 'off' })).toEqual([
    {
      id: 'schema',
      severity: 'error',
      finding: `${finding}, and MIGRATE is off`,
      action: expect.stringMatching(/^run .*cli.* migrate/),
    },
  ])
})

it.each([
  ['starts', true],
  ['creates', false],
])(
  'names an embedded database that the start %s, and what was not examined',
  async (does, isThere) => {
    const DATA_DIR = makeFolder()
    if (isThere) mkdirSync(join(DATA_DIR, 'postgres'))
    if (isThere) writeFileSync(join(DATA_DIR, 'postgres/PG_VERSION'), readPackageMajor())
    const findings = await examine({ DATABASE_URL: '', DATA_DIR })
    expect(findings.map(({ id, severity }) => [id, severity])).toEqual([
      ['settings', 'info'],
      ['gateway', 'info'],
      ['database', 'warning'],
    ])
    expect(findings[2]).toMatchObject({
      finding: `DATABASE_URL is not set: the start ${does} an embedded PostgreSQL in ${DATA_DIR}`,
      action: 'nothing in the database was examined: start the service, and run this again',
    })
  },
)

it('names an index and a constraint that are missing, and where to find them', async () => {
  const { sql } = rig.database
  const [index] = await sql<{ definition: string }[]>`
    select indexdef as definition from pg_indexes where indexname = 'transactions_due'`
  const [check] = await sql<{ definition: string }[]>`
    select pg_get_constraintdef(oid) as definition from pg_constraint where conname = 'processes_role_known'`
  await sql`drop index transactions_due`
  await sql`alter table processes drop constraint processes_role_known`
  onTestFinished(async () => {
    await sql.unsafe(index?.definition ?? '')
    await sql.unsafe(
      `alter table processes add constraint processes_role_known ${check?.definition}`,
    )
  })
  const found = (await sick()).filter(({ id }) => id === 'indexes')
  expect(found.map(({ severity, finding }) => [severity, finding.split(' is ')[0]])).toEqual([
    ['error', 'processes_role_known'],
    ['warning', 'the index transactions_due'],
  ])
})

it('names an account that was removed while work of it waits', async () => {
  await seedGone(rig.database, 60)
  const found = await sick()
  expect(found).toContainEqual(
    expect.objectContaining({ id: 'accounts', finding: expect.stringContaining('GONE01') }),
  )
  expect(found.map(({ id }) => id)).not.toContain('backlog')
})

it('names what has been waiting for too long, and claims of a process that died', async () => {
  const { sql } = rig.database
  const { merchantCode } = MERCHANT
  await sql`
    insert into discrepancies (merchant_code, transaction_id, kind, ours, theirs, at)
    values (${merchantCode}, 'T-OLD', 'payment_missing', 'a', 'b', now() - interval '3 days')`
  await sql`
    insert into transactions (merchant_code, transaction_id, due_at, lease_id, lease_owner, claimed, want)
    values (${merchantCode}, 'T-DEAD', now() + interval '1 hour', gen_random_uuid(), gen_random_uuid(), 0, 1)`
  // One that a process gave back before it ended.
  await sql`
    insert into transactions (merchant_code, transaction_id, due_at, lease_owner)
    values (${merchantCode}, 'T-BACK', now() + interval '1 hour', gen_random_uuid())`
  onTestFinished(async () => {
    await sql`delete from discrepancies where transaction_id = 'T-OLD'`
    await sql`delete from transactions where transaction_id in ('T-DEAD', 'T-BACK')`
  })
  const found = await sick()
  expect(found.map(({ id }) => id).toSorted()).toEqual(['claims', 'discrepancies'])
  expect(found.find(({ id }) => id === 'claims')?.finding).toMatch(/: 1$/)
  expect(found.find(({ id }) => id === 'discrepancies')?.finding).toContain('3 days old')
})

it('names a service without a worker', async () => {
  const { sql } = rig.database
  await sql`update processes set role = 'web'`
  onTestFinished(async () => void (await sql`update processes set role = 'all'`))
  expect(await sick()).toContainEqual(
    expect.objectContaining({ id: 'processes', severity: 'error' }),
  )
})

it('names wake-ups that do not arrive, as behind a pooler in transaction mode', async () => {
  const proxy = await startDatabaseProxy(rig.database.url)
  onTestFinished(() => proxy.stop())
  const readers = new Map<object, ReturnType<typeof createMessageReader>>()
  proxy.alter = (answer, session) => {
    const read = readers.get(session) ?? createMessageReader('server')
    readers.set(session, read)
    // The server knows no session that listens: none gets a NotificationResponse.
    const messages = read(answer).filter(({ type }) => type !== 'A')
    return Buffer.concat(messages.map(({ bytes }) => bytes))
  }
  expect(await sick({ DATABASE_URL: proxy.url() })).toEqual([
    {
      id: 'wakeups',
      severity: 'warning',
      finding: expect.stringContaining('did not arrive within 2 s'),
      action: expect.stringContaining('pooler in session mode'),
    },
  ])
})

const HOUR_MS = 3_600_000

it.each([
  ['has ended', -HOUR_MS, 'error', 'CERT_HAS_EXPIRED', 'check the clock of this machine'],
  ['ends soon', HOUR_MS, 'warning', 'certificate valid until', "gateway's operator renew it"],
])('names a certificate of the gateway that %s', async (_, endsMs, severity, finding, action) => {
  const authority = makeAuthority()
  const NODE_EXTRA_CA_CERTS = join(makeFolder(), 'ca.pem')
  writeFileSync(NODE_EXTRA_CA_CERTS, authority.cert)
  const server = createServer(authority.issue('127.0.0.1', endsMs), (_, response) => response.end())
  const GATEWAY_BASE_URL = `https://127.0.0.1:${await listen(server)}`
  const { out } = await spawnCli(['doctor', '--json'], {
    ...healthy,
    GATEWAY_BASE_URL,
    NODE_EXTRA_CA_CERTS,
  })
  const { findings } = Report.parse(JSON.parse(out))
  expect(findings.find(({ id }) => id === 'gateway')).toEqual({
    id: 'gateway',
    severity,
    finding: expect.stringContaining(finding),
    action: expect.stringContaining(action),
  })
})
