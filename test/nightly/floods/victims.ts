import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { Pool } from 'undici'
import { expect, onTestFinished } from 'vitest'
import { KEY, MERCHANT, signIpn } from '../../support/service.ts'
import { Answers, type Flood } from './flood.ts'

/** How long a victim waited (ms). */
export type Latency = { p50: number; p99: number }
/** Sends genuine notifications, and names them in `sent`; throws if one is not answered as at idle. */
export type Victim = (url: string, sent: string[]) => Promise<Latency>

const JSON_TYPE = { 'content-type': 'application/json' }

let sequence = 0

/** @returns the id of a notification, and what is posted */
function makeGenuine(): { id: string; body: string } {
  sequence += 1
  const id = `T-GENUINE-${sequence}`
  return { id, body: JSON.stringify(signIpn({ svc_TransactionID: id })) }
}

function toLatency(times: readonly number[]): Latency {
  const sorted = times.toSorted((a, b) => a - b)
  const at = (part: number) => sorted[Math.floor(sorted.length * part)] ?? 0
  return { p50: at(0.5), p99: at(0.99) }
}

const MEASURED = 400
/** Between two of a connection (ms): well below what a service can take, so that at idle nothing waits. */
const PAUSE_MS = 5

/** Posts notifications steadily on four connections; all of them have to be answered with 200. */
export async function notifySteadily(url: string, sent: string[] = []): Promise<Latency> {
  const pool = new Pool(url, { connections: 4, localAddress: '127.0.0.1' })
  const times: number[] = []
  const post = async (): Promise<void> => {
    while (times.length < MEASURED) {
      const { id, body } = makeGenuine()
      sent.push(id)
      const started = performance.now()
      const answer = await pool.request({ path: '/ipn', method: 'POST', headers: JSON_TYPE, body })
      await answer.body.dump()
      times.push(performance.now() - started)
      expect(answer.statusCode).toBe(200)
      await sleep(PAUSE_MS)
    }
  }
  await Promise.all(Array.from({ length: 4 }, post))
  await pool.destroy()
  return toLatency(times)
}

/** Posts notifications steadily, and reads its own transactions meanwhile; all have to be answered with 200. */
export async function notifyAndRead(url: string, sent: string[]): Promise<Latency> {
  const own = `/v1/transactions?merchantCode=${MERCHANT.merchantCode}&limit=10`
  const paths = ['/v1/transactions/T-MINE', '/v1/transactions/T-MINE/timeline', own]
  const pool = new Pool(url, { connections: 1 })
  const headers = { authorization: `Bearer ${KEY}` }
  let isOver = false
  const readOn = async () => {
    for (let n = 0; !isOver || n < paths.length; n += 1) {
      const path = paths[n % paths.length] ?? '/'
      const answer = await pool.request({ path, method: 'GET', headers })
      await answer.body.dump()
      expect([path, answer.statusCode]).toEqual([path, 200])
    }
  }
  const notify = async () => {
    const latency = await notifySteadily(url, sent)
    isOver = true
    return latency
  }
  const [latency] = await Promise.all([notify(), readOn()])
  await pool.destroy()
  return latency
}

const PER_S = 50
const FOR_MS = 1_500

/** Sends notifications at a rate that does not wait for answers, from an address behind the proxy. */
export async function notifyAtRate(url: string, sent: string[]): Promise<Latency> {
  const pool = new Pool(url, { connections: 50, pipelining: 1, headersTimeout: 60_000 })
  const headers = { ...JSON_TYPE, 'x-forwarded-for': '198.51.100.7' }
  const sendOne = async (body: string): Promise<number> => {
    const started = performance.now()
    for (;;) {
      const answer = await pool.request({ path: '/ipn', method: 'POST', headers, body })
      const text = await answer.body.text()
      if (answer.statusCode === 200) return performance.now() - started
      // Sent again, as the gateway does: beside other work the database may be behind.
      expect([answer.statusCode, text]).toEqual([503, expect.stringContaining('not stored')])
    }
  }
  const began = performance.now()
  const times: Promise<number>[] = []
  while (performance.now() - began < FOR_MS) {
    const { id, body } = makeGenuine()
    sent.push(id)
    times.push(sendOne(body))
    await sleep(1_000 / PER_S)
  }
  const latency = toLatency(await Promise.all(times))
  await pool.destroy()
  return latency
}

/**
 * Starts a flood; resolves when its first requests have been answered.
 * @returns ends it, and resolves with its answers
 */
export async function startFlood(flood: Flood): Promise<() => Promise<Answers>> {
  const child: ChildProcess = fork(fileURLToPath(new URL('flood.ts', import.meta.url)), [], {
    execArgv: ['--import', 'tsx'],
  })
  onTestFinished(() => void child.kill('SIGKILL'))
  await once(child, 'message')
  child.send(flood)
  await once(child, 'message')
  return async () => {
    const answered = once(child, 'message')
    child.send('stop')
    return Answers.parse((await answered)[0])
  }
}

/** Writes what a flood does to others: their latencies at idle, beside it, and the ratio of the p99. */
export function report(name: string, idle: Latency, beside: Latency): void {
  const show = ({ p50, p99 }: Latency) => `p50 ${p50.toFixed(1)} ms, p99 ${p99.toFixed(1)} ms`
  const ratio = (beside.p99 / idle.p99).toFixed(2)
  console.info(`${name}: idle ${show(idle)}; under attack ${show(beside)}; ratio ${ratio}`)
}
