import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { describe, expect, it, onTestFinished } from 'vitest'
import { postIpn, type Rig, signIpn, startRig } from '../../support/service.ts'
import { useRig } from '../../support/use-started.ts'
import { waitUntil } from '../../support/wait-until.ts'

/** The backstop is far away: each of these limits has to disconnect its client by itself. */
const QUICK = { headersMs: 300, requestMs: 60_000, keepAliveMs: 400, checkMs: 50 }

const rig = useRig({
  settings: { ROLE: 'web' },
  config: { bodyTimeoutMs: 200 },
  serverLimits: QUICK,
})

/** Opens a connection, and collects what it receives. */
async function open({ service }: Rig = rig) {
  const { hostname, port } = new URL(service.url)
  const socket: Socket = connect(Number(port), hostname)
  onTestFinished(() => {
    socket.destroy()
  })
  let received = ''
  socket.setEncoding('utf8').on('data', (text) => {
    received += text
  })
  socket.on('error', () => {})
  await once(socket, 'connect')
  const closed = once(socket, 'close')
  return { socket, received: () => received, closed }
}

const HEAD = 'POST /ipn HTTP/1.1\r\nHost: here\r\nContent-Type: application/json\r\n'

/** What is sent once, what is dripped after it, and what is answered before the connection is closed. */
const CLIENTS: [what: string, once: string, drip: string, answer: RegExp][] = [
  [
    'never ends the head of its request',
    'POST /ipn HTTP/1.1\r\nHost: here\r\nX-Slow: ',
    'x',
    /^HTTP\/1\.1 408 .*\r\nConnection: close/s,
  ],
  ['connects and sends nothing', '', '', /^HTTP\/1\.1 408 /],
]

describe('a client that', () => {
  it.each(CLIENTS)('%s is answered 408 and cut off', async (_, once, drip, answer) => {
    const client = await open()
    client.socket.write(once)
    const dripping = setInterval(() => client.socket.write(drip), 20)
    onTestFinished(() => clearInterval(dripping))
    await client.closed
    expect(client.received()).toMatch(answer)
  })

  it('never ends its body is cut off by the backstop as well, should no route read the body', async () => {
    const patient = await startRig({
      settings: { ROLE: 'web' },
      config: { bodyTimeoutMs: 60_000 },
      serverLimits: { headersMs: 200, requestMs: 400, checkMs: 50 },
    })
    onTestFinished(() => patient.stop())
    const client = await open(patient)
    client.socket.write(`${HEAD}Content-Length: 1000\r\n\r\n{`)
    await client.closed
    expect(client.received()).toMatch(/^HTTP\/1\.1 408 /)
  })

  it('sends no further request is cut off, but not before the keep-alive time-out', async () => {
    const client = await open()
    const ask = () => client.socket.write('GET /healthz HTTP/1.1\r\nHost: here\r\n\r\n')
    ask()
    await waitUntil(() => client.received().includes('"ok"'), { what: 'the first answer' })
    ask()
    await waitUntil(() => client.received().split('"ok"').length === 3, { what: 'the second' })
    await client.closed
  })

  it('waits for a change is held for as long as it asked, past every time-out', async () => {
    await postIpn(rig.service.url, signIpn({ svc_TransactionID: 'T-HELD' }))
    const started = performance.now()
    expect((await rig.api('/v1/transactions/T-HELD?wait=2')).status).toBe(200)
    expect(performance.now() - started).toBeGreaterThan(1_900)
  })

  it('sends a body while the inbox is full is answered before the body ends', async () => {
    const full = await startRig({ settings: { ROLE: 'web' }, config: { bodyTimeoutMs: 60_000 } })
    onTestFinished(() => full.stop())
    full.service.ctx.inbox.isFull = () => true
    const client = await open(full)
    client.socket.write(`${HEAD}Content-Length: 1000\r\n\r\n{`)
    await waitUntil(() => client.received() !== '', { what: 'an answer' })
    expect(client.received()).toMatch(/^HTTP\/1\.1 503 .*"respcode":1/s)
  })
})

describe('connections', () => {
  /** As many as the system allows one process beside everything else, 10,000 at most. */
  const count = Math.min(10_000, Math.floor((readOpenFiles() - 1_000) / 2.2))

  it(`that are idle, ${count} of them, do not keep a notification out, and cost little`, async () => {
    // As from the proxy in front: one network has a bound of its own.
    const patient = await startRig({
      settings: { ROLE: 'web', TRUSTED_PROXIES: '127.0.0.1' },
      serverLimits: { headersMs: 60_000, requestMs: 90_000 },
    })
    onTestFinished(() => patient.stop())
    const before = process.memoryUsage().rss
    const idle: Awaited<ReturnType<typeof open>>[] = []
    for (let n = 0; n < count; n += 200) {
      const more = Array.from({ length: Math.min(200, count - n) }, () => open(patient))
      idle.push(...(await Promise.all(more)))
    }
    const { status } = await postIpn(patient.service.url, signIpn({ svc_TransactionID: 'T-IDLE' }))
    expect(status).toBe(200)
    expect(idle.filter(({ socket }) => socket.destroyed).length).toBe(0)
    // Both ends of each are in this process.
    expect((process.memoryUsage().rss - before) / count).toBeLessThan(100_000)
  }, 60_000)
})

function readOpenFiles(): number {
  const report: unknown = process.report?.getReport()
  const text = JSON.stringify(report)
  const soft = /"open_files":\{"soft":"?(\d+|unlimited)/.exec(text)?.[1]
  return soft === undefined || soft === 'unlimited' ? 20_000 : Number(soft)
}
