import { fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { Pool } from 'undici'
import { onTestFinished } from 'vitest'
import type { z } from 'zod'
import type { Flood } from './flood.ts'
import { signIpn } from './service.ts'

/** How long notifications took (ms), and how many were not answered with 200. */
export type Latency = { p50: number; p99: number; refused: number }

const CONNECTIONS = 4
/** Well below what a service can take, so that at idle nothing waits (ms between two of a connection). */
const PAUSE_MS = 5

let sequence = 0

/** Posts notifications steadily, as the gateway does, from an address of its own. */
export async function measureNotifications(url: string, count: number): Promise<Latency> {
  const pool = new Pool(url, { connections: CONNECTIONS, connect: { localAddress: '127.0.0.1' } })
  const times: number[] = []
  let refused = 0
  const post = async (): Promise<void> => {
    while (times.length < count) {
      sequence += 1
      const body = JSON.stringify(signIpn({ svc_TransactionID: `T-MEASURED-${sequence}` }))
      const headers = { 'content-type': 'application/json' }
      const started = performance.now()
      const response = await pool.request({ path: '/ipn', method: 'POST', headers, body })
      await response.body.dump()
      times.push(performance.now() - started)
      if (response.statusCode !== 200) refused += 1
      await new Promise((resolve) => setTimeout(resolve, PAUSE_MS))
    }
  }
  await Promise.all(Array.from({ length: CONNECTIONS }, post))
  await pool.destroy()
  times.sort((a, b) => a - b)
  const at = (share: number) => times[Math.floor(times.length * share)] ?? 0
  return { p50: at(0.5), p99: at(0.99), refused }
}

/** Writes what an attack does to others: their latencies at idle, under attack, and the ratio of the p99. */
export function reportAttack(name: string, idle: Latency, attacked: Latency): number {
  const ratio = attacked.p99 / idle.p99
  const show = ({ p50, p99 }: Latency) => `p50 ${p50.toFixed(1)} ms, p99 ${p99.toFixed(1)} ms`
  console.info(
    `${name}: idle ${show(idle)}; under attack ${show(attacked)}; ratio ${ratio.toFixed(2)}`,
  )
  return ratio
}

/**
 * Starts a flood of requests in a process of its own; resolves when each connection had an answer.
 * @returns ends it, and resolves with the number of its answers
 */
export async function startFlood(flood: z.input<typeof Flood>): Promise<() => Promise<number>> {
  const file = fileURLToPath(new URL('flood.ts', import.meta.url))
  const child = fork(file, [JSON.stringify(flood)], { execArgv: ['--import', 'tsx'] })
  onTestFinished(() => void child.kill('SIGKILL'))
  await once(child, 'message')
  return async () => {
    const answered = once(child, 'message')
    child.send('stop')
    return Number((await answered)[0])
  }
}
