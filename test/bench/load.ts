import { Pool } from 'undici'
import { makeNotification, makeStripeEvent } from './notifications.ts'

/** What the load process is asked to do. */
export type Job = {
  url: string
  /** `ipn` and `stripe` post a notification of its own each time; `get` reads the paths in turn. */
  kind: 'ipn' | 'stripe' | 'get'
  paths?: readonly string[]
  headers?: Record<string, string>
  connections: number
  /** How many requests, or for how long (ms). */
  count?: number
  forMs?: number
}

export type LoadResult = {
  /** How many were answered with 200. */
  count: number
  seconds: number
  /** How many had which status. */
  statuses: Record<string, number>
  /** In ms. */
  latencies: number[]
}

type Message = { path: string; body: string | null; headers: Record<string, string> }

/** More than any server here answers in a second. */
const READY_PER_S = 30_000

/** The load comes from a process of its own, so that it does not share a thread with what is measured. */
process.on('message', (job: Job) => {
  runJob(job).then(
    (result) => process.send?.(result),
    (error: unknown) => process.send?.({ error: String(error) }),
  )
})
process.on('disconnect', () => process.exit())

async function runJob(job: Job): Promise<LoadResult> {
  const { connections, count, forMs = 0 } = job
  const pool = new Pool(job.url, { connections, pipelining: 1 })
  const take = prepare(job)
  const statuses: Record<string, number> = {}
  const latencies: number[] = []
  let sent = 0
  const started = performance.now()
  const isOver = () => (count === undefined ? performance.now() - started >= forMs : sent >= count)

  async function one(): Promise<void> {
    const from = performance.now()
    const message = take(sent)
    sent += 1
    const status = await request(pool, message)
    latencies.push(performance.now() - from)
    statuses[status] = (statuses[status] ?? 0) + 1
  }

  await Promise.all(
    Array.from({ length: connections }, async () => {
      while (!isOver()) await one()
    }),
  )
  const seconds = (performance.now() - started) / 1000
  await pool.close()
  return { count: statuses[200] ?? 0, seconds, statuses, latencies }
}

/** Signs the messages before the clock starts; should they not suffice, more are made on the way. */
function prepare(job: Job): (n: number) => Message {
  const { kind, paths = ['/'], headers = {}, count, forMs = 0 } = job
  if (kind === 'get') {
    return (n) => ({ path: paths[n % paths.length] ?? '/', body: null, headers })
  }
  const json = { 'content-type': 'application/json', ...headers }
  const ready = Array.from({ length: count ?? Math.ceil((forMs / 1000) * READY_PER_S) }, make)
  return (n) => ready[n] ?? make()

  function make(): Message {
    if (kind === 'ipn') return { path: '/ipn', body: makeNotification().body, headers: json }
    const event = makeStripeEvent()
    return { path: '/webhook', body: event.body, headers: { ...json, ...event.headers } }
  }
}

function request(pool: Pool, { path, body, headers }: Message): Promise<number> {
  return new Promise((resolve) => {
    let status = 0
    pool.dispatch(
      { path, method: body === null ? 'GET' : 'POST', body, headers },
      {
        onRequestStart() {},
        onResponseStart(_controller, code) {
          status = code
        },
        onResponseData() {},
        onResponseEnd: () => resolve(status),
        onResponseError: () => resolve(0),
      },
    )
  })
}
