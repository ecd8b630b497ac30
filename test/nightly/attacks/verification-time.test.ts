import { readFile } from 'node:fs/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import { Pool } from 'undici'
import { expect, it, onTestFinished } from 'vitest'
import { createTestDatabase } from '../../support/database.ts'
import { type Flood, startFlood } from '../../support/ipn-flood.ts'
import { settingsFor, startServiceProcess } from '../../support/process.ts'
import { signIpn } from '../../support/service.ts'

const JSON_TYPE = 'application/json'
const FORM_TYPE = 'application/x-www-form-urlencoded'
const PER_S = 100
const FLOOD_MS = 1_500
const GENUINE_PER_S = 50
/** CPU that one notification of the flood may take, as many bytes as are read (ms). Unbounded ones took 4 to 10. */
const MAX_CPU_MS = 2.5

const FORGED = { ...signIpn({ svc_TransactionID: 'T-FORGED' }), svc_SecureHash: '0'.repeat(64) }
const name = (n: number) => `svc_${n.toString(36)}`
const members = (count: number, value: string | number) =>
  Object.fromEntries(Array.from({ length: count }, (_, n) => [name(n), value]))
const pairs = Array.from({ length: 10_000 }, (_, n) => `${name(n)}=`)
const nested = (by: number) =>
  JSON.stringify({ ...FORGED, svc_ExtData: 0 }).replace(':0', `:${'['.repeat(by)}${']'.repeat(by)}`)

const ONE = ['203.0.113.9']
const NETWORK = Array.from({ length: 500 }, (_, n) => `2001:db8:0:7::${n.toString(16)}`)
const MANY = Array.from({ length: 500 }, (_, n) => `2001:db8:0:${n.toString(16)}::1`)

const ATTACKS: [string, Pick<Flood, 'bodies' | 'contentType' | 'addresses'>][] = [
  [
    '5,300 members and a wrong hash',
    {
      bodies: [JSON.stringify({ ...FORGED, ...members(5_300, 1) })],
      contentType: JSON_TYPE,
      addresses: ONE,
    },
  ],
  [
    '5,300 members and a right hash',
    {
      bodies: [JSON.stringify(signIpn({ svc_TransactionID: 'T-MANY', ...members(5_300, 1) }))],
      contentType: JSON_TYPE,
      addresses: ONE,
    },
  ],
  [
    'a form of 10,000 members, from many addresses of a /64',
    { bodies: [pairs.join('&').slice(0, 65_000)], contentType: FORM_TYPE, addresses: NETWORK },
  ],
  [
    'nesting 30,000 levels deep',
    { bodies: [nested(30_000)], contentType: JSON_TYPE, addresses: ONE },
  ],
  [
    'as many members as are read, each of a KiB, from 500 networks',
    {
      bodies: [JSON.stringify({ ...FORGED, ...members(58, 'x'.repeat(1_000)) })],
      contentType: JSON_TYPE,
      addresses: MANY,
    },
  ],
]

it('genuine notifications are stored while a flood keeps the parser busy', async () => {
  const database = await createTestDatabase()
  onTestFinished(() => database.drop())
  const service = await startServiceProcess({
    ...settingsFor(database.url, 'http://127.0.0.1:9'),
    ROLE: 'web',
    TRUSTED_PROXIES: '127.0.0.1',
  })
  const pool = new Pool(service.url, { connections: 50, pipelining: 1, headersTimeout: 60_000 })
  onTestFinished(() => pool.destroy())
  const sent: string[] = []
  /** CPU of the service (ms): it has ticks of 10 ms. */
  const readCpu = async () => {
    const stat = await readFile(`/proc/${service.child.pid}/stat`, 'utf8')
    const fields = stat.slice(stat.lastIndexOf(')')).split(' ')
    return (Number(fields[12]) + Number(fields[13])) * 10
  }

  /** Sends genuine notifications at a steady rate, whatever the answers take; returns their p50 and p99 (ms). */
  async function sendGenuine(forMs: number) {
    const started = performance.now()
    const times: Promise<number>[] = []
    while (performance.now() - started < forMs) {
      const id = `T-${sent.length}`
      sent.push(id)
      times.push(sendOne(id))
      await sleep(1_000 / GENUINE_PER_S)
    }
    const sorted = (await Promise.all(times)).sort((a, b) => a - b)
    const at = (part: number) => sorted[Math.floor(sorted.length * part)] ?? 0
    return { p50: at(0.5), p99: at(0.99) }
  }
  async function sendOne(id: string): Promise<number> {
    const body = JSON.stringify(signIpn({ svc_TransactionID: id }))
    const headers = { 'content-type': JSON_TYPE, 'x-forwarded-for': '198.51.100.7' }
    const startedAt = performance.now()
    for (;;) {
      const answer = await pool.request({ path: '/ipn', method: 'POST', headers, body })
      const text = await answer.body.text()
      if (answer.statusCode === 200) return performance.now() - startedAt
      // As the gateway does: beside other work the database may be behind.
      expect([answer.statusCode, text]).toEqual([503, expect.stringContaining('not stored')])
    }
  }

  await sendGenuine(500)
  const idleSince = await readCpu()
  const idle = await sendGenuine(FLOOD_MS)
  const idleCpuMs = (await readCpu()) - idleSince
  for (const [what, attack] of ATTACKS) {
    const flood = await startFlood({ url: service.url, perS: PER_S, forMs: FLOOD_MS, ...attack })
    const busySince = await readCpu()
    const busy = await sendGenuine(FLOOD_MS)
    const statuses = await flood.ended
    const count = Object.values(statuses).reduce((sum, one) => sum + one, 0)
    const cpuMs = ((await readCpu()) - busySince - idleCpuMs) / count
    console.info(
      `${what}: ${JSON.stringify(statuses)}; genuine p50 ${idle.p50.toFixed(1)} to ${busy.p50.toFixed(1)} ms, ` +
        `p99 ${idle.p99.toFixed(1)} to ${busy.p99.toFixed(1)} ms, ratio ${(busy.p99 / idle.p99).toFixed(2)}; ${cpuMs.toFixed(2)} ms of CPU each`,
    )
    expect.soft(cpuMs, what).toBeLessThan(MAX_CPU_MS)
    expect.soft(statuses[200], what).toBeUndefined()
  }
  const rows = await database.sql<{ id: string }[]>`select transaction_id as id from ipn_events`
  expect(rows.map(({ id }) => id).toSorted()).toEqual(sent.toSorted())
}, 60_000)
