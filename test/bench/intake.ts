import { type Cpu, measureCpu } from './cpu.ts'
import { rateOf } from './load-client.ts'
import { type Measure, percentile } from './report.ts'
import { alternate, type Comparison, compare } from './rounds.ts'
import { type Stage, settleAll } from './stage.ts'

const CONNECTIONS = 64
const SERVERS = ['web', 'batched', 'naive', 'bare'] as const

type Round = { rate: number; own: number; postgres: number; bytes: number }

/** The acknowledgement; notifications a second, and what each costs, with 64 connections and every one different. */
export async function measureIntake(stage: Stage, size: number): Promise<Measure[]> {
  const ack = await measureAck(stage, size)
  const of = await alternate(SERVERS, stage.effort.rounds, (name) => runRound(stage, name))
  await settleAll(stage)
  const row = (
    name: string,
    unit: string,
    baseline: (typeof SERVERS)[number],
    figure: (round: Round) => number,
    more: Partial<Comparison>,
  ) =>
    compare({
      ...{ name: `${name} / ${baseline}`, size, unit, ...more },
      service: of('web').map(figure),
      baseline: of(baseline).map(figure),
    })
  const rate = (baseline: (typeof SERVERS)[number], atLeast: number) =>
    row('intake', '/s', baseline, (round) => round.rate, { target: { atLeast } })
  const cpu = 'CPU for a notification'
  return [
    ...ack,
    ...[rate('batched', 0.75), rate('naive', 1.5), rate('bare', 0.35)],
    row(`the service's ${cpu}`, 'µs', 'bare', ({ own }) => own, { target: { atMost: 1.8 } }),
    row(`${cpu}, service and Postgres`, 'µs', 'naive', ({ own, postgres }) => own + postgres, {
      growth: 1.2,
    }),
    row(`${cpu}, Postgres`, 'µs', 'batched', ({ postgres }) => postgres, {
      target: { atMost: 2 },
    }),
    row('bytes on disk for a notification', 'B', 'naive', ({ bytes }) => bytes, {
      target: { atMost: 1.6 },
    }),
  ]
}

async function runRound(stage: Stage, name: (typeof SERVERS)[number]): Promise<Round> {
  const { database, beside, load, effort } = stage
  const { url, child } = stage[name]
  const { sql } = name === 'web' ? database : beside
  const readBytes = async () => {
    const [row] = await sql`select pg_database_size(current_database())::float8 as bytes`
    return row?.bytes
  }
  const bytesBefore = await readBytes()
  const job = { url, kind: 'ipn', connections: CONNECTIONS, forMs: effort.roundMs } as const
  const { result, cpu } = await measureCpu(child, sql, () => load.run(job))
  const bytes = Math.max(0, (await readBytes()) - bytesBefore) / result.count
  return { rate: rateOf(result), bytes, ...divide(cpu, result.count) }
}

/** In µs of each. */
function divide({ own, postgres }: Cpu, count: number): Cpu {
  return { own: (own * 1000) / count, postgres: (postgres * 1000) / count }
}

/** The acknowledgement, one request at a time. */
async function measureAck(stage: Stage, size: number): Promise<Measure[]> {
  const names = ['web', 'naive'] as const
  const job = { kind: 'ipn', connections: 1, count: 200 } as const
  const of = await alternate(names, stage.effort.rounds + 2, (name) =>
    stage.load.run({ ...job, url: stage[name].url }),
  )
  const list = (name: (typeof names)[number], percent: number) =>
    of(name).map(({ latencies }) => percentile(latencies, percent))
  const one = (percent: number) => ({
    name: `ack, one at a time, p${percent} / naive`,
    size,
    unit: 'ms',
    digits: 2,
    service: list('web', percent),
    baseline: list('naive', percent),
  })
  return [compare({ ...one(50), target: { atMost: 1.15 }, growth: 1.2 }), compare(one(99))]
}
