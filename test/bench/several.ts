import { readFile } from 'node:fs/promises'
import { latencyOf, rateOf } from './load-client.ts'
import { type Started, startBaseline, startService } from './processes.ts'
import { type Measure, median } from './report.ts'
import { alternate, compare, describeRounds } from './rounds.ts'
import type { Stage } from './stage.ts'

const PROCESSES = 4
/** Notifications a second of each process: none of them is busy, so they do not compete for the cores. */
const RATE = 100
const FULL_LOAD_MS = 10_000

/** What several web processes on one Postgres cost each other. */
export async function measureSeveral(stage: Stage, size: number): Promise<Measure[]> {
  const { database, beside, gateway, effort } = stage
  const services = await startAll(() =>
    startService(database.url, gateway.url, 'web', stage.profiles),
  )
  const naives = await startAll(() => startBaseline('naive', beside.url, gateway.url))
  try {
    return [
      await measureLatency(stage, size, 'service', services),
      await measureLatency(stage, size, 'naive', naives),
      ...(await measureFullLoad(stage, size, services)),
    ]
  } finally {
    await Promise.all([...services, ...naives].map((one) => one.stop()))
    await settings(stage, false)
  }

  async function startAll(start: () => Promise<Started>): Promise<Started[]> {
    return await Promise.all(Array.from({ length: PROCESSES }, start))
  }

  async function measureLatency(on: Stage, stored: number, whose: string, all: Started[]) {
    const of = await alternate(['four', 'one'] as const, effort.rounds, async (name) => {
      const urls = all.slice(0, name === 'four' ? PROCESSES : 1).map(({ url }) => url)
      const job = { kind: 'ipn', urls, connections: 16, fromSending: true } as const
      const rate = RATE * urls.length
      return latencyOf(await on.load.run({ ...job, rate, forMs: effort.roundMs }), 50)
    })
    return compare({
      name: `ack p50, ${whose}, ${RATE}/s for each process: four processes / one`,
      size: stored,
      unit: 'ms',
      digits: 2,
      service: of('four'),
      baseline: of('one'),
      ...(whose === 'service' ? { target: { atMost: 1.5 } } : {}),
    })
  }
}

/** As fast as they can, with a worker beside them: the rate, and how often a commit waited for NOTIFY's lock. */
async function measureFullLoad(
  stage: Stage,
  size: number,
  services: readonly Started[],
): Promise<Measure[]> {
  const { database, gateway, load, effort, server } = stage
  const rates = async (urls: string[]) => {
    const job = { kind: 'ipn', urls, connections: Math.ceil(64 / urls.length) } as const
    const of = await alternate(['all'], effort.rounds, async () =>
      rateOf(await load.run({ ...job, forMs: effort.roundMs })),
    )
    return of('all')
  }
  const urls = services.map(({ url }) => url)
  const four = await rates(urls)
  const one = await rates(urls.slice(0, 1))
  const rate: Measure = {
    name: 'intake of four processes at full load (/s)',
    size,
    result: median(four),
    value: describeRounds(four, '/s'),
    baseline: `one process ${describeRounds(one, '/s')}`,
  }
  if (server.log === undefined) {
    console.log("waits for NOTIFY's lock are not counted: the embedded Postgres writes no log file")
    return [rate]
  }
  const worker = await startService(database.url, gateway.url, 'worker', stage.profiles)
  await settings(stage, true)
  const before = await countWaits(server.log)
  await load.run({ kind: 'ipn', urls, connections: 16, forMs: FULL_LOAD_MS })
  const waits = (await countWaits(server.log)) - before
  await settings(stage, false)
  await worker.stop()
  return [
    rate,
    {
      name: "waits for NOTIFY's lock longer than 1 ms, four processes at full load for 10 s",
      size,
      result: waits,
      value: '',
      baseline: '',
      target: { atMost: 0 },
    },
  ]
}

/** Lets Postgres log each wait for a lock that takes longer than 1 ms, or as by default. */
async function settings({ database: { sql } }: Stage, isLogged: boolean): Promise<void> {
  for (const [name, value] of [
    ['log_lock_waits', 'on'],
    ['deadlock_timeout', "'1ms'"],
  ]) {
    await sql.unsafe(`alter system ${isLogged ? `set ${name} = ${value}` : `reset ${name}`}`)
  }
  await sql`select pg_reload_conf()`
}

/** A commit with a NOTIFY locks the database number 0, of all databases: class 1262 is `pg_database`. */
async function countWaits(log: string): Promise<number> {
  const text = await readFile(log, 'utf8')
  return text.match(/still waiting for .* on object 0 of class 1262/g)?.length ?? 0
}
