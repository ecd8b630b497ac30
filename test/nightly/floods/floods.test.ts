import { readFile } from 'node:fs/promises'
import { beforeAll, expect, it, onTestFinished } from 'vitest'
import { OTHER, writeMerchantsFile } from '../../support/api.ts'
import { type ServiceProcess, settingsFor, startServiceProcess } from '../../support/process.ts'
import { addKey, MERCHANT, signIpn } from '../../support/service.ts'
import { useOwnDatabase } from '../../support/use-started.ts'
import type { Answers, Flood } from './flood.ts'
import { notifyAndRead, notifyAtRate, report, startFlood, type Victim } from './victims.ts'

/** `served` notifications of the victim were answered beside the flood. */
type Seen = { answers: Answers; served: number; seconds: number; cpuMs: number }
type Row = {
  flood: string
  attack: Omit<Flood, 'url'>
  /** Who has to be served as if there were no flood. */
  victim: Victim
  bound: (seen: Seen) => void
}

const count = (answers: Answers) => Object.values(answers).reduce((sum, one) => sum + one, 0)

/** Reads of what needs no key, from one address. */
const readers = (path: string): Row => ({
  flood: `150 parallel ${path}`,
  attack: { path, connections: 150, localAddress: '127.0.0.9' },
  victim: notifyAndRead,
  bound: ({ answers, seconds }) => {
    // 200 a second, and what is refused after it was held for half a second or longer.
    expect(count(answers)).toBeLessThanOrEqual(150 + seconds * (200 + 2 * 150))
  },
})

/** A key of the other account, which may only read. */
const READER = 'key-of-another-account-that-only-reads'

/** Reads of another account, by one key. */
const lists = (flood: string, connections: number, path: string): Row => ({
  flood: `${connections} parallel ${flood}`,
  attack: {
    path: `/v1/transactions${path}`,
    headers: { authorization: `Bearer ${READER}` },
    connections,
    localAddress: '127.0.0.9',
  },
  victim: notifyAndRead,
  bound: ({ answers, served }) => {
    // About as many with one session of the reads. Without turns it was 5 and 29 times.
    expect(answers[200] ?? 0).toBeLessThanOrEqual(2 * served)
  },
})

const JSON_TYPE = 'application/json'
const FORM_TYPE = 'application/x-www-form-urlencoded'
const ONE = ['203.0.113.9']
const NETWORK = Array.from({ length: 500 }, (_, n) => `2001:db8:0:7::${n.toString(16)}`)
const MANY = Array.from({ length: 500 }, (_, n) => `2001:db8:0:${n.toString(16)}::1`)

/** CPU that one notification may take, as many bytes as are read (ms). Unbounded ones took 4 to 10. */
const MAX_CPU_MS = 2.5

/** Notifications that are dear to check, behind a trusted proxy. */
const notifications = (
  flood: string,
  body: object | string,
  addresses: string[],
  type = JSON_TYPE,
): Row => ({
  flood,
  attack: {
    path: '/ipn',
    method: 'POST',
    headers: { 'content-type': type },
    body: typeof body === 'string' ? body : JSON.stringify(body),
    addresses,
    perS: 100,
    connections: 100,
    localAddress: '127.0.0.1',
  },
  victim: notifyAtRate,
  bound: ({ answers, cpuMs }) => {
    expect.soft(cpuMs / count(answers)).toBeLessThan(MAX_CPU_MS)
    expect.soft(answers[200]).toBeUndefined()
  },
})

const FORGED = { ...signIpn({ svc_TransactionID: 'T-FORGED' }), svc_SecureHash: '0'.repeat(64) }
const name = (n: number) => `svc_${n.toString(36)}`
const members = (many: number, value: string | number) =>
  Object.fromEntries(Array.from({ length: many }, (_, n) => [name(n), value]))
const pairs = Array.from({ length: 10_000 }, (_, n) => `${name(n)}=`).join('&')
const nested = JSON.stringify({ ...FORGED, svc_ExtData: 0 }).replace(
  ':0',
  `:${'['.repeat(30_000)}${']'.repeat(30_000)}`,
)

const FLOODS: Row[] = [
  readers('/metrics'),
  readers('/readyz'),
  readers('/healthz'),
  readers('/openapi.json'),
  readers('/docs/swagger-ui-bundle.js'),
  lists('lists of a state that nothing is in', 150, '?state=refunded'),
  lists('timelines of one busy transaction', 40, '/BUSY/timeline?limit=1'),
  notifications('5,300 members and a wrong hash', { ...FORGED, ...members(5_300, 1) }, ONE),
  notifications(
    '5,300 members and a right hash',
    signIpn({ svc_TransactionID: 'T-MANY', ...members(5_300, 1) }),
    ONE,
  ),
  notifications(
    'a form of 10,000 members, from many addresses of a /64',
    pairs.slice(0, 65_000),
    NETWORK,
    FORM_TYPE,
  ),
  notifications('nesting 30,000 levels deep', nested, ONE),
  notifications(
    'as many members as are read, each of a KiB, from 500 networks',
    { ...FORGED, ...members(58, 'x'.repeat(1_000)) },
    MANY,
  ),
]

const ROWS = 200_000
const NOTIFICATIONS = 20_000

const database = useOwnDatabase()

// The other account has many transactions, and one of them many notifications.
beforeAll(async () => {
  const { merchantCode } = OTHER
  const { sql } = database
  await sql`
    insert into transactions (merchant_code, transaction_id, state, final, first_seen_at)
    select ${merchantCode}, 'T' || n, 'paid', true, now() - n * interval '1 second'
    from generate_series(1, ${ROWS}::int) as n`
  await sql`
    insert into transactions (merchant_code, transaction_id, state, final, ipn_count)
    values (${merchantCode}, 'BUSY', 'paid', true, ${NOTIFICATIONS})`
  await sql`
    insert into ipn_events (merchant_code, text_hash, kind, transaction_id, verdict, body, address, deliveries, first_received_at)
    select ${merchantCode}, md5(n::text)::uuid, 'payment', 'BUSY', 'verified', '{}',
      '127.0.0.1', 1, now() - n * interval '1 second' from generate_series(1, ${NOTIFICATIONS}::int) as n`
  await sql`
    insert into transactions (merchant_code, transaction_id) values (${MERCHANT.merchantCode}, 'T-MINE')`
  await addKey(database, READER, ['payments:read'], merchantCode)
})

/** Starts a service of two accounts, behind a proxy that it trusts. */
async function start(): Promise<ServiceProcess> {
  const file = writeMerchantsFile([MERCHANT, OTHER])
  onTestFinished(file.remove)
  const {
    GATEWAY_MERCHANT_CODE: _,
    GATEWAY_SECRET: __,
    ...settings
  } = settingsFor(database.url, 'http://127.0.0.1:9')
  return await startServiceProcess({
    ...settings,
    ...{ ROLE: 'web', MERCHANTS_FILE: file.path, TRUSTED_PROXIES: '127.0.0.1' },
  })
}

/** CPU of a service (ms): it has ticks of 10 ms. */
async function readCpu({ child }: ServiceProcess): Promise<number> {
  const stat = await readFile(`/proc/${child.pid}/stat`, 'utf8')
  const fields = stat.slice(stat.lastIndexOf(')')).split(' ')
  return (Number(fields[12]) + Number(fields[13])) * 10
}

it.each(FLOODS.map((row): [string, Row] => [row.flood, row]))(
  '%s: all others are served',
  async (flood, { attack, victim, bound }) => {
    await database.sql`delete from ipn_events where merchant_code = ${MERCHANT.merchantCode}`
    const service = await start()
    const { url } = service
    const sent: string[] = []
    await victim(url, sent)
    const idleSince = await readCpu(service)
    const idle = await victim(url, sent)
    const idleCpuMs = (await readCpu(service)) - idleSince
    const busySince = await readCpu(service)
    const began = performance.now()
    const stop = await startFlood({ url, ...attack })
    const before = sent.length
    const beside = await victim(url, sent)
    const served = sent.length - before
    const answers = await stop()
    const seconds = (performance.now() - began) / 1_000
    const cpuMs = (await readCpu(service)) - busySince - idleCpuMs
    const each = (cpuMs / count(answers)).toFixed(2)
    report(`${flood}: ${JSON.stringify(answers)}, ${each} ms of CPU each`, idle, beside)
    bound({ answers, served, seconds, cpuMs })
    const rows = await database.sql<{ id: string }[]>`
    select transaction_id as id from ipn_events where merchant_code = ${MERCHANT.merchantCode}`
    expect(rows.map(({ id }) => id).toSorted()).toEqual(sent.toSorted())
  },
  90_000,
)
