import { latencyOf, rateOf } from './load-client.ts'
import { measureWithPgbench } from './pgbench.ts'
import { measureCpuMs } from './processes.ts'
import { describeRounds, type Measure, median } from './report.ts'
import type { Stage } from './stage.ts'

const ROUNDS = 3
const ROUND_MS = 4_000
const CONNECTIONS = 64
/** Notifications a second while CPU is counted: steady, and the same at every size. */
const COST_RATE = 500
const SERVERS = ['web', 'storesNothing', 'oneInsert'] as const

type Rounds = Record<(typeof SERVERS)[number], number[]>

/**
 * Notifications a second with 64 connections, beside the same stack that stores nothing, one insert per
 * request, and pgbench with the same statement; alternating rounds.
 */
export async function measureIntake(
  stage: Stage,
  size: number,
): Promise<{ measures: Measure[]; oneInsertRate: number }> {
  const rates: Rounds = { web: [], storesNothing: [], oneInsert: [] }
  for (let round = -1; round < ROUNDS; round += 1) {
    for (const name of SERVERS) {
      const job = { url: stage[name].url, kind: 'ipn' as const, connections: CONNECTIONS }
      const result = await stage.load.run({ ...job, forMs: ROUND_MS })
      // The first round only warms up.
      if (round >= 0) rates[name].push(rateOf(result))
    }
  }
  const pgbench = await measureWithPgbench(stage.database, CONNECTIONS)
  const own = median(rates.web)
  const value = describeRounds(rates.web, '/s')
  const beside = (what: string, baseline: number[], target?: Measure['target']): Measure => ({
    name: `intake / ${what}`,
    size,
    result: own / median(baseline),
    value,
    baseline: describeRounds(baseline, '/s'),
    ...(target ? { target } : {}),
  })
  const measures = [
    beside('the same stack storing nothing', rates.storesNothing, { atLeast: 0.8 }),
    beside('one insert per request', rates.oneInsert, { atLeast: 2 }),
    ...(pgbench ? [beside('pgbench, the same statement, 64 clients', pgbench)] : []),
  ]
  return { measures, oneInsertRate: median(rates.oneInsert) }
}

/** The acknowledgement, one request at a time and at half of what one insert per request can take. */
export async function measureAck(
  stage: Stage,
  size: number,
  oneInsertRate: number,
): Promise<Measure[]> {
  const alone = await measureLatency(stage, 7, { connections: 1, count: 200 })
  const half = await measureLatency(stage, ROUNDS, {
    connections: CONNECTIONS,
    forMs: ROUND_MS,
    rate: oneInsertRate / 2,
  })
  const compare = (
    name: string,
    percent: number,
    rounds: typeof alone,
    target?: Measure['target'],
  ): Measure => {
    const of = (which: 'web' | 'oneInsert') => rounds[which].map((one) => latencyOf(one, percent))
    return {
      name: `ack p${percent}, ${name} / one insert per request`,
      size,
      result: median(of('web')) / median(of('oneInsert')),
      value: describeRounds(of('web'), 'ms', 2),
      baseline: describeRounds(of('oneInsert'), 'ms', 2),
      ...(percent === 50 ? { growing: { figure: median(of('web')), atMost: 1.3 } } : {}),
      ...(target ? { target } : {}),
    }
  }
  return [
    compare('one request at a time', 50, alone, { atMost: 1.15 }),
    compare('one request at a time', 99, alone),
    compare('at half of its capacity', 50, half),
    compare('at half of its capacity', 99, half, { atMost: 1 }),
    compare('at half of its capacity', 99.9, half),
  ]
}

async function measureLatency(
  { load, web, oneInsert }: Stage,
  rounds: number,
  job: { connections: number; count?: number; forMs?: number; rate?: number },
) {
  const results: Record<'web' | 'oneInsert', Awaited<ReturnType<typeof load.run>>[]> = {
    web: [],
    oneInsert: [],
  }
  for (let round = -1; round < rounds; round += 1) {
    for (const [name, { url }] of [
      ['web', web],
      ['oneInsert', oneInsert],
    ] as const) {
      const result = await load.run({ url, kind: 'ipn', ...job })
      if (round >= 0) results[name].push(result)
    }
  }
  return results
}

/** What a notification costs: CPU of the service and of Postgres at a steady rate, and bytes on disk. */
export async function measureCost(stage: Stage, size: number): Promise<Measure[]> {
  const { database, load, web } = stage
  const disk = async () => {
    const [row] = await database.sql`select pg_database_size(current_database())::float8 as bytes`
    return row?.bytes
  }
  const bytesBefore = await disk()
  const before = await measureCpuMs(web.child, database.sql)
  const { count } = await load.run({
    url: web.url,
    kind: 'ipn',
    connections: CONNECTIONS,
    forMs: 6_000,
    rate: COST_RATE,
  })
  const after = await measureCpuMs(web.child, database.sql)
  const service = (after.own - before.own) / count
  const server = (after.database - before.database) / count
  return [
    {
      name: 'CPU per notification (ms), service and Postgres',
      size,
      result: service + server,
      value: `${service.toFixed(3)} + ${server.toFixed(3)} ms`,
      baseline: '',
      growing: { figure: service + server, atMost: 1.2 },
    },
    {
      name: 'bytes on disk per notification',
      size,
      result: Math.max(0, (await disk()) - bytesBefore) / count,
      value: '',
      baseline: '',
    },
  ]
}
