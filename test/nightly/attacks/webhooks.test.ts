import { createServer, type Server } from 'node:net'
import { expect, it, onTestFinished } from 'vitest'
import { z } from 'zod'
import { runCli } from '../../support/cli.ts'
import { listen, serve } from '../../support/gateway.ts'
import {
  addKey,
  KEY,
  MERCHANT,
  type Rig,
  type RigOptions,
  startTestService,
} from '../../support/service.ts'
import { useRig } from '../../support/use-started.ts'
import { waitUntil } from '../../support/wait-until.ts'
import { callWebhooks, publish } from '../../support/webhooks.ts'

const { merchantCode } = MERCHANT
const LEAKED = 'key-that-leaked-and-is-revoked-0123456789'
const ALONE = 'key-for-webhooks-alone-0123456789-01234'
const rig = useRig({ settings: { WEBHOOK_ALLOW_PRIVATE: 'true' } })

const Registered = z.object({ id: z.string() })
const Typed = z.object({ type: z.string() })
const Attempts = z.object({
  data: z.array(
    z.object({
      error: z.string().nullable(),
      durationMs: z.number().nullable(),
      answer: z.string().nullable(),
    }),
  ),
})

/** Another process on the same database; its endpoints are deleted with it. */
async function startBeside(options: RigOptions): Promise<Rig> {
  await rig.database.sql`delete from webhook_endpoints`
  const service = await startTestService(rig.database, rig.sandbox.url, options)
  onTestFinished(async () => {
    await rig.database.sql`delete from webhook_endpoints`
    await service.stop()
  })
  return { ...rig, service, database: rig.database }
}

/** Addresses that no webhook may reach: this machine, private networks, link-local ones, the metadata of clouds. */
const FORBIDDEN = [
  ...['127.0.0.1', '10.0.0.1', '172.16.0.1', '192.168.0.1', '169.254.169.254', '100.100.100.200'],
  ...['168.63.129.16', '192.0.0.192'],
]

/** Spells an IPv4 address in the notations that parsers, resolvers and gateways understand. */
function spell(address: string): string[] {
  const [a = 0, b = 0, c = 0, d = 0] = address.split('.').map(Number)
  const number = ((a * 256 + b) * 256 + c) * 256 + d
  const hex = (high: number, low: number) => (high * 256 + low).toString(16)
  const embedded = `${hex(a, b)}:${hex(c, d)}`
  return [
    ...[address, `${address}.`, String(number), `0x${number.toString(16)}`],
    ...[`${a}.${b}.${c * 256 + d}`, `${a}.${(b * 256 + c) * 256 + d}`],
    [a, b, c, d].map((part) => `0x${part.toString(16)}`).join('.'),
    [a, b, c, d].map((part) => `0${part.toString(8)}`).join('.'),
    ...[`[::ffff:${embedded}]`, `[::${embedded}]`, `[64:ff9b::${embedded}]`],
    ...[`[64:ff9b:1::${embedded}]`, `[2002:${embedded}::1]`, `[2606:4700::5efe:${embedded}]`],
    ...[`[2606:4700::200:5efe:${embedded}]`, `[2001:0:${embedded}::1]`],
  ]
}
async function registerAs(key: string, url: string, at: Rig = rig): Promise<string> {
  const response = await callWebhooks(at, 'POST', '', { url }, key)
  expect(response.status).toBe(201)
  return Registered.parse(await response.json()).id
}

it('a revoked key: changes go on, and its endpoint gets none of them', async () => {
  const scopes = ['payments:read', 'refunds:read', 'webhooks:write']
  await addKey(rig.database, LEAKED, scopes, merchantCode)
  const [leaked, own] = [await serve((one) => one.end()), await serve((one) => one.end())]
  await registerAs(LEAKED, leaked.url)
  await callWebhooks(rig, 'POST', `?merchantCode=${merchantCode}`, { url: own.url })
  await publish(rig, ['T-0'], { merchantCode })
  await waitUntil(() => leaked.seen.length === 1 && own.seen.length === 1, { what: 'both' })
  const [key] = await rig.database.sql<{ id: string }[]>`
    select id from actors where hash = sha256(${LEAKED}::bytea)`
  const { out } = await runCli(['keys', 'revoke', key?.id ?? ''], {
    DATABASE_URL: rig.database.url,
  })
  expect(out).toContain(new URL(leaked.url).host)
  const ids = Array.from({ length: 100 }, (_, n) => `T-${n}`)
  await publish(rig, ids, { merchantCode })
  await waitUntil(() => own.seen.length === 101, { what: 'the events at the other endpoint' })
  expect(leaked.seen).toHaveLength(1)
})

it('the whole history, replayed with webhooks:write alone: refused at every other endpoint, and no payment at its own', async () => {
  await addKey(rig.database, ALONE, ['webhooks:write'], merchantCode)
  const receiver = await serve((response) => response.end())
  const own = await registerAs(ALONE, receiver.url)
  const list = await callWebhooks(rig, 'GET', '', undefined, ALONE)
  const { data } = z.object({ data: z.array(Registered) }).parse(await list.json())
  expect(data.map(({ id }) => id)).toContain(own)
  for (const { id } of data) {
    const replay = await callWebhooks(rig, 'POST', `/${id}/replay`, { after: '0' }, ALONE)
    const moved = await callWebhooks(rig, 'PATCH', `/${id}`, { url: receiver.url }, ALONE)
    // Its own gets what becomes of endpoints, which this scope may read.
    expect([replay.status, moved.status]).toEqual(id === own ? [202, 200] : [403, 403])
  }
  const types = receiver.seen.map(({ body }) => Typed.parse(JSON.parse(body)).type)
  expect(types.filter((type) => !type.startsWith('webhook_endpoint.'))).toEqual([])
})

/** What listens on the ports that the attack maps. */
const SERVICES: [string, Server | undefined][] = [
  ['nothing', undefined],
  ['a database that waits', createServer(() => {})],
  ['a mail server', createServer((socket) => socket.end('220 mail ESMTP\r\n'))],
  ['a server that hangs up', createServer((socket) => socket.destroy())],
]

it('the ports of this machine, mapped through tests: all look and last the same, and few fit in a minute', async () => {
  const settings = { ROLE: 'web', WEBHOOK_ALLOW_PRIVATE: 'true' }
  const at = await startBeside({ settings })
  const began = performance.now()
  const ports = await Promise.all(
    SERVICES.map(([, server]) => (server ? listen(server) : Promise.resolve(65_535))),
  )
  const results = await Promise.all(
    ports.map(async (port) => {
      const id = await registerAs(KEY, `http://127.0.0.1:${port}/`, at)
      const sent = performance.now()
      const answer = await callWebhooks(at, 'POST', `/${id}/test`)
      expect(performance.now() - sent).toBeGreaterThanOrEqual(4_990)
      return await answer.text()
    }),
  )
  expect([...new Set(results)]).toEqual([
    '{"delivered":false,"status":null,"durationMs":5000,"error":"no answer"}',
  ])
  for (const port of [1, 22, 25, 111, 389, 631, 873, 1_023]) {
    const url = `http://127.0.0.1:${port}/`
    expect((await callWebhooks(at, 'POST', '', { url })).status, url).toBe(422)
  }
  const receiver = await serve((response) => response.end())
  const id = await registerAs(KEY, receiver.url, at)
  const statuses: number[] = []
  for (let n = 0; n < 40; n += 1) {
    statuses.push((await callWebhooks(at, 'POST', `/${id}/test`)).status)
  }
  const delivered = ports.length + statuses.filter((status) => status === 200).length
  // Twenty a minute: one more for every three seconds that the attack takes.
  expect(delivered).toBeGreaterThanOrEqual(20)
  expect(delivered).toBeLessThanOrEqual(21 + (performance.now() - began) / 3_000)
  expect(new Set(statuses)).toEqual(new Set([200, 429]))
})

it('the log of deliveries names no reason either, whatever listens', async () => {
  const mail = await listen(createServer((socket) => socket.end('220 mail ESMTP\r\n')))
  const shown: unknown[] = []
  for (const port of [65_535, mail]) {
    const id = await registerAs(KEY, `http://127.0.0.1:${port}/`)
    await publish(rig, [`T-port-${port}`], { merchantCode })
    const read = async () =>
      Attempts.parse(await (await callWebhooks(rig, 'GET', `/${id}/deliveries`)).json()).data
    await waitUntil(async () => (await read()).length > 0, { what: 'an attempt' })
    const [one] = await read()
    shown.push({ error: one?.error, durationMs: one?.durationMs, answer: one?.answer })
    await callWebhooks(rig, 'DELETE', `/${id}`)
  }
  const none = { error: 'no answer', durationMs: null, answer: null }
  expect(shown).toEqual([none, none])
})

it('forbidden addresses in every notation, and names that lead there: refused, and never connected to', async () => {
  const connections = { count: 0 }
  const port = await listen(
    createServer((socket) => {
      connections.count += 1
      socket.destroy()
    }),
  )
  const answers = new Map<string, string[]>()
  const resolve = (name: string) => Promise.resolve([answers.get(name)?.shift() ?? '127.0.0.1'])
  const at = await startBeside({ settings: { ROLE: 'web' }, resolve })
  const hosts = [...FORBIDDEN.flatMap(spell), 'localhost', 'db', 'nas.local', 'metadata.internal']
  for (const host of hosts) {
    const url = `https://${host}:${port}/`
    const { status } = await callWebhooks(at, 'POST', '', { url })
    expect({ host, status }).toEqual({ host, status: 422 })
  }
  expect(hosts.length).toBeGreaterThan(80)
  // Rebinding: the first answer is public, the next leads inside.
  answers.set('rebind.example', ['8.8.8.8'])
  const id = await registerAs(KEY, `https://rebind.example:${port}/`, at)
  const test = await callWebhooks(at, 'POST', `/${id}/test`)
  expect(await test.json()).toMatchObject({ delivered: false, status: null })
  expect(connections.count).toBe(0)
})
