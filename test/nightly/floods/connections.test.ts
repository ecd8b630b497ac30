import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { expect, it, onTestFinished } from 'vitest'
import { type Rig, startRig } from '../../support/service.ts'
import { waitUntil } from '../../support/wait-until.ts'
import { notifySteadily, report } from './victims.ts'

const TOTAL = 600
const PER_NETWORK = 200

async function start(settings: Record<string, string> = {}): Promise<Rig> {
  const rig = await startRig({
    settings: { ROLE: 'web', ...settings },
    // The bounds of production, smaller: each connection takes two of this process's open files.
    serverLimits: {
      connections: TOTAL,
      connectionsPerNetwork: PER_NETWORK,
      headersMs: 60_000,
      requestMs: 90_000,
    },
  })
  onTestFinished(() => rig.stop())
  return rig
}

/** Opens connections that send nothing; those that the service closes are gone from the list. */
async function openIdle(url: string, localAddress: string, count: number): Promise<Set<Socket>> {
  const open = new Set<Socket>()
  onTestFinished(() => {
    for (const socket of open) socket.destroy()
  })
  const { hostname, port } = new URL(url)
  const one = async () => {
    const socket = connect({ host: hostname, port: Number(port), localAddress })
    open.add(socket)
    socket.on('error', () => {}).once('close', () => open.delete(socket))
    await Promise.race([once(socket, 'connect'), once(socket, 'close')])
  }
  for (let left = count; left > 0; left -= 100) {
    await Promise.all(Array.from({ length: Math.min(100, left) }, one))
  }
  return open
}

/** How many connections the service counted as refused for this reason. */
async function countRefused({ service }: Rig, reason: string): Promise<number | undefined> {
  const { values } = await service.ctx.metrics.connectionsRefused.get()
  return values.find(({ labels }) => labels.reason === reason)?.value
}

/** Opens as many as the service takes in all. @returns ends the flood */
async function openAll(rig: Rig): Promise<() => Promise<void>> {
  const held = await openIdle(rig.service.url, '127.0.0.9', TOTAL)
  await waitUntil(() => held.size <= PER_NETWORK, { what: 'the others are closed' })
  expect(held.size).toBe(PER_NETWORK)
  return async () => {
    expect(await countRefused(rig, 'network')).toBe(TOTAL - PER_NETWORK)
    expect(await countRefused(rig, 'total')).toBe(0)
  }
}

/** Opens as many as one network may, and more again and again, which are refused. @returns ends the flood */
async function openAgain({ service: { url } }: Rig): Promise<() => Promise<void>> {
  const held = await openIdle(url, '127.0.0.9', PER_NETWORK)
  let over = false
  const storm = (async () => {
    while (!over) {
      const more = await openIdle(url, '127.0.0.9', 20)
      await Promise.all([...more].map((socket) => socket.destroyed || once(socket, 'close')))
    }
  })()
  return async () => {
    over = true
    await storm
    expect(held.size).toBe(PER_NETWORK)
  }
}

it.each([
  ['as many idle connections of one address as the service takes in all', openAll],
  ['an address that opens and is refused, again and again,', openAgain],
])(
  '%s: no notification is refused',
  async (name, flood) => {
    const rig = await start()
    const { url } = rig.service
    await notifySteadily(url)
    const idle = await notifySteadily(url)
    const end = await flood(rig)
    const beside = await notifySteadily(url)
    await end()
    report(name, idle, beside)
  },
  120_000,
)

it('the connections of a trusted proxy count towards the total alone, which is refused and counted as such', async () => {
  const rig = await start({ TRUSTED_PROXIES: '127.0.0.9' })
  const { url } = rig.service
  const held = await openIdle(url, '127.0.0.9', TOTAL)
  expect(held.size).toBe(TOTAL)
  const others = await openIdle(url, '127.0.0.8', 5)
  await waitUntil(() => others.size === 0, { what: 'refusals' })
  expect(await countRefused(rig, 'total')).toBe(5)
  expect(await countRefused(rig, 'network')).toBe(0)
}, 120_000)
