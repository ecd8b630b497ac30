import { setTimeout as sleep } from 'node:timers/promises'
import { Pool } from 'undici'
import { makeNotification } from './notifications.ts'

/** What the load process is asked to do. */
export type Job = {
  /** One, or several that are called in turn, each with so many connections. */
  url?: string
  urls?: readonly string[]
  /** `ipn` posts a notification of its own each time; `get` reads the paths in turn. */
  kind: 'ipn' | 'get'
  paths?: readonly string[]
  headers?: Record<string, string>
  connections: number
  /** How many requests, or for how long (ms). */
  count?: number
  forMs?: number
  /** Requests per second, each measured from when it should have left; as fast as it goes when not set. */
  rate?: number
}

export type LoadResult = {
  count: number
  seconds: number
  /** How many had which status. */
  statuses: Record<string, number>
  /** Sorted, ms. */
  latencies: number[]
}

/** The load comes from a process of its own, so that it does not share a thread with what is measured. */
process.on('message', (job: Job) => {
  runJob(job).then(
    (result) => process.send?.(result),
    (error: unknown) => process.send?.({ error: String(error) }),
  )
})

async function runJob(job: Job): Promise<LoadResult> {
  const { connections, count, forMs = 0, rate } = job
  const urls = job.urls ?? [job.url ?? '']
  const pools = urls.map((url) => new Pool(url, { connections, pipelining: 1 }))
  // Signed before the clock starts; should they not suffice, more are made on the way.
  const ready =
    job.kind === 'ipn'
      ? Array.from(
          { length: count ?? Math.ceil((forMs / 1000) * (rate ?? 9000)) },
          makeNotification,
        )
      : []
  const statuses: Record<string, number> = {}
  const latencies: number[] = []
  let sent = 0
  const started = performance.now()
  const isOver = () => (count === undefined ? performance.now() - started >= forMs : sent >= count)

  async function one(from: number): Promise<void> {
    const body = job.kind === 'ipn' ? (ready[sent] ?? makeNotification()).body : null
    const path = job.kind === 'ipn' ? '/ipn' : (job.paths?.[sent % job.paths.length] ?? '/')
    const pool = pools[sent % pools.length]
    sent += 1
    const status = pool ? await request(pool, path, body, job.headers ?? {}) : 0
    latencies.push(performance.now() - from)
    statuses[status] = (statuses[status] ?? 0) + 1
  }

  if (rate === undefined) {
    await Promise.all(
      Array.from({ length: connections * urls.length }, async () => {
        while (!isOver()) await one(performance.now())
      }),
    )
  } else {
    const flying = new Set<Promise<void>>()
    while (!isOver()) {
      const due = Math.floor(((performance.now() - started) / 1000) * rate)
      while (sent < due && !isOver()) {
        const flight = one(started + (sent / rate) * 1000).finally(() => flying.delete(flight))
        flying.add(flight)
      }
      await sleep(1)
    }
    await Promise.all(flying)
  }
  const seconds = (performance.now() - started) / 1000
  await Promise.all(pools.map((pool) => pool.close()))
  latencies.sort((a, b) => a - b)
  return { count: latencies.length, seconds, statuses, latencies }
}

function request(
  pool: Pool,
  path: string,
  body: string | null,
  headers: Record<string, string>,
): Promise<number> {
  return new Promise((resolve) => {
    let status = 0
    pool.dispatch(
      {
        path,
        method: body === null ? 'GET' : 'POST',
        body,
        headers: body === null ? headers : { 'content-type': 'application/json', ...headers },
      },
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
