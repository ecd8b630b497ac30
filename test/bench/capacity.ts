import { setTimeout as sleep } from 'node:timers/promises'
import type postgres from 'postgres'
import { type Cpu, measureCpu, readRssMb } from './cpu.ts'
import { resetCalls, type Started, startService, untilCalled } from './processes.ts'
import { type Measure, makeFigure } from './report.ts'
import { type Stage, settleAll } from './stage.ts'

/**
 * The first change of a page after a checkpoint is written to the log as a whole, so a notification costs the more the fewer
 * come between two checkpoints (by default five minutes): 10 thousand a day are 35, a million are 3,472, and of ten million
 * 31,250 more follow those.
 */
const RUNS = [
  { name: '35 after a checkpoint', count: 35, connections: 1, isFirst: true },
  { name: '3,472 after a checkpoint', count: 3_472, connections: 4, isFirst: true },
  { name: 'those that follow', count: 3_472, connections: 4, isFirst: false },
]
/** Transactions of which the last measure asks again; a worker begins 50 a second. */
const RECHECKED = 500
const IDLE_MS = 20_000

type Cost = { cpu: Cpu; walBytes: number; seconds: number }
type Show = (name: string, result: number, unit: string) => Measure

/** What one notification costs, with the query and the payment that follow it. */
export async function measureCapacity(stage: Stage, size: number): Promise<Measure[]> {
  const { database, gateway, profiles, web } = stage
  const { sql } = database
  const worker = await startService(database.url, gateway.url, 'worker', profiles)
  const show: Show = (name, result, unit) => makeFigure(`capacity: ${name} (${unit})`, size, result)
  try {
    await settleAll(stage)
    const idle = await measureBoth(stage, worker, () => sleep(IDLE_MS))
    const subtractIdle = ({ cpu, seconds }: Cost): Cpu => {
      const share = seconds / idle.seconds
      return {
        own: cpu.own - share * idle.cpu.own,
        postgres: cpu.postgres - share * idle.cpu.postgres,
      }
    }
    const measures = [
      show('cores of the idle service', idle.cpu.own / IDLE_MS, 'cores'),
      show('cores of Postgres beside it', idle.cpu.postgres / IDLE_MS, 'cores'),
    ]
    for (const { name, count, connections, isFirst } of RUNS) {
      const before = await readSizes(sql)
      if (isFirst) await sql`checkpoint`
      const cost = await measureBoth(stage, worker, async () => {
        await resetCalls(gateway)
        await stage.load.run({ url: web.url, kind: 'ipn', connections, count })
        await untilCalled(gateway, 'QUERY_PT', count)
        await untilFed(sql)
      })
      const cpu = subtractIdle(cost)
      measures.push(
        show(`CPU of the service, ${name}`, cpu.own / count, 'ms'),
        show(`CPU of Postgres, ${name}`, cpu.postgres / count, 'ms'),
        show(`WAL, ${name}`, cost.walBytes / count / 1e3, 'kB'),
      )
      if (isFirst) continue
      const after = await readSizes(sql)
      for (const [table, bytes] of Object.entries(after)) {
        const each = (bytes - (before[table] ?? 0)) / count
        if (each >= 1) measures.push(show(table, each, 'B'))
      }
    }
    measures.push(...(await measureRechecks(stage, worker, subtractIdle, show)))
    const memory = { web: await readRssMb(web.child), worker: await readRssMb(worker.child) }
    for (const [role, mb] of Object.entries(memory))
      measures.push(show(`memory, ${role}`, mb, 'MB'))
    return measures
  } finally {
    await worker.stop()
  }
}

/** A transaction that became final is asked about once more, a day later: here, now. */
async function measureRechecks(
  stage: Stage,
  worker: Started,
  subtractIdle: (cost: Cost) => Cpu,
  show: Show,
): Promise<Measure[]> {
  const { sql } = stage.database
  await sql`checkpoint`
  await resetCalls(stage.gateway)
  await sql`
    update transactions set reconcile_at = now() where (merchant_code, transaction_id) in (
      select merchant_code, transaction_id from transactions where reconcile_at > now()
      order by reconcile_at desc limit ${RECHECKED})`
  const cost = await measureBoth(stage, worker, async () => {
    await untilCalled(stage.gateway, 'QUERY_PT', RECHECKED)
    await untilFed(sql)
  })
  const cpu = subtractIdle(cost)
  return [
    show('CPU of the service for a recheck', cpu.own / RECHECKED, 'ms'),
    show('CPU of Postgres for a recheck', cpu.postgres / RECHECKED, 'ms'),
    show('WAL of a recheck', cost.walBytes / RECHECKED / 1e3, 'kB'),
  ]
}

/** The CPU of both processes of the service and of Postgres, and the log that is written. */
async function measureBoth(
  { web, database: { sql } }: Stage,
  worker: Started,
  work: () => Promise<void>,
): Promise<Cost> {
  const began = performance.now()
  const [from] = await sql`select pg_current_wal_lsn()::text as lsn`
  const { result, cpu } = await measureCpu(web.child, sql, async () => {
    return await measureCpu(worker.child, sql, work)
  })
  const [row] = await sql`
    select pg_wal_lsn_diff(pg_current_wal_lsn(), ${from?.lsn}::pg_lsn)::float8 as bytes`
  const seconds = (performance.now() - began) / 1_000
  const own = cpu.own + result.cpu.own
  return { cpu: { own, postgres: cpu.postgres }, walBytes: row?.bytes ?? 0, seconds }
}

/** Until nothing is due or claimed, and every event is in the feed. */
async function untilFed(sql: postgres.Sql): Promise<void> {
  for (;;) {
    const rows = await sql`
      (select from transactions where due_at is not null limit 1) union all (select from event_outbox limit 1)`
    if (rows.length === 0) return
    // Seldom: its own CPU counts as well.
    await sleep(1_000)
  }
}

async function readSizes(sql: postgres.Sql): Promise<Record<string, number>> {
  const rows = await sql<{ name: string; bytes: number }[]>`
    select relname::text as name, pg_total_relation_size(oid)::float8 as bytes from pg_class
    where relkind = 'r' and relnamespace = 'public'::regnamespace`
  return Object.fromEntries(rows.map(({ name, bytes }) => [name, bytes]))
}
