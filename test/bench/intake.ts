import { type Cpu, measureCpu } from './cpu.ts'
import { latencyOf, rateOf } from './load-client.ts'
import type { Measure } from './report.ts'
import { alternate, compare } from './rounds.ts'
import type { Stage } from './stage.ts'

const CONNECTIONS = 64
const SERVERS = ['web', 'batched', 'naive', 'bare'] as const

type Round = { rate: number; own: number; postgres: number; bytes: number }

/** Notifications a second, and what each of them costs, with 64 connections and every notification different. */
export async function measureIntake(
  stage: Stage,
  size: number,
): Promise<Record<'intake' | 'cost', Measure[]>> {
  const of = await alternate(SERVERS, stage.effort.rounds, (name) => runRound(stage, name))
  const list = (name: (typeof SERVERS)[number], field: keyof Round) =>
    of(name).map((round) => round[field])
  const both = (name: (typeof SERVERS)[number]) =>
    of(name).map(({ own, postgres }) => own + postgres)
  const rate = (baseline: 'batched' | 'naive' | 'bare', atLeast: number) =>
    compare({
      name: `intake / ${baseline}`,
      size,
      unit: '/s',
      service: list('web', 'rate'),
      baseline: list(baseline, 'rate'),
      target: { atLeast },
    })
  const cost = { size, unit: 'µs' }
  return {
    intake: [rate('batched', 0.75), rate('naive', 1.5), rate('bare', 0.35)],
    cost: [
      compare({
        ...cost,
        name: "the service's CPU for a notification / bare",
        service: list('web', 'own'),
        baseline: list('bare', 'own'),
        target: { atMost: 1.8 },
      }),
      compare({
        ...cost,
        name: 'CPU for a notification, service and Postgres / naive',
        service: both('web'),
        baseline: both('naive'),
        growth: 1.2,
      }),
      compare({
        ...cost,
        name: 'CPU for a notification, Postgres / batched',
        service: list('web', 'postgres'),
        baseline: list('batched', 'postgres'),
        target: { atMost: 2 },
      }),
      compare({
        name: 'bytes on disk for a notification / naive',
        size,
        unit: 'B',
        service: list('web', 'bytes'),
        baseline: list('naive', 'bytes'),
        target: { atMost: 1.6 },
      }),
    ],
  }
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
  const job = { urls: [url], kind: 'ipn', connections: CONNECTIONS, forMs: effort.roundMs } as const
  const { result, cpu } = await measureCpu(child, sql, () => load.run(job))
  const bytes = Math.max(0, (await readBytes()) - bytesBefore) / result.count
  return { rate: rateOf(result), bytes, ...divide(cpu, result.count) }
}

/** In µs of each. */
function divide({ own, postgres }: Cpu, count: number): Cpu {
  return { own: (own * 1000) / count, postgres: (postgres * 1000) / count }
}

/** The acknowledgement, one request at a time. */
export async function measureAck(stage: Stage, size: number): Promise<Measure[]> {
  const names = ['web', 'naive'] as const
  const job = { kind: 'ipn', connections: 1, count: 200 } as const
  const of = await alternate(names, stage.effort.rounds + 2, (name) =>
    stage.load.run({ ...job, urls: [stage[name].url] }),
  )
  const list = (name: (typeof names)[number], percent: number) =>
    of(name).map((result) => latencyOf(result, percent))
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
