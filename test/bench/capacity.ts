import { setTimeout as sleep } from 'node:timers/promises'
import type postgres from 'postgres'
import { type Cpu, measureCpu, readRssMb } from './cpu.ts'
import { resetCalls, type Started, startService, untilCalled } from './processes.ts'
import { type Measure, writeSize } from './report.ts'
import { type Stage, settleAll } from './stage.ts'

/** Notifications a day, and how many times the average the busiest minute has. */
const DAYS = [10_000, 1_000_000, 10_000_000]
const PEAK = 5
/** Between two checkpoints, by Postgres' default: the first change of a page after one is written to the log as a whole. */
const INTERVALS_A_DAY = 288
const DAY_S = 86_400
/** Rechecks that are measured; a worker begins 50 a second. */
const RECHECKED = 500

/** What one notification costs, with the query and the payment that follow it, at the pace of a whole day. */
export async function measureCapacity(stage: Stage, size: number): Promise<Measure[]> {
  const { database, gateway, profiles } = stage
  const { sql } = database
  const worker = await startService(database.url, gateway.url, 'worker', profiles)
  const show = (name: string, result: number, unit: string): Measure => {
    return { name: `capacity: ${name}`, size, result, value: unit, baseline: '' }
  }
  try {
    await settleAll(stage)
    const measures: Measure[] = []
    for (const day of DAYS) {
      const before = await readSizes(sql)
      await sql`checkpoint`
      const count = Math.round(day / INTERVALS_A_DAY)
      const rate = (PEAK * day) / DAY_S
      const job = { urls: [stage.web.url], kind: 'ipn', connections: 64, count, rate } as const
      const { cpu, walBytes } = await measureBoth(stage, worker, async () => {
        await resetCalls(gateway)
        const { count: taken } = await stage.load.run(job)
        if (taken < count) throw new Error(`${count - taken} of ${count} were refused`)
        await untilCalled(gateway, 'QUERY_PT', count)
        await untilFed(sql)
      })
      const of = `of ${writeSize(day)} a day`
      measures.push(
        show(`CPU of the service for one ${of}`, cpu.own / count, 'ms'),
        show(`CPU of Postgres for one ${of}`, cpu.postgres / count, 'ms'),
        show(`WAL ${of}`, (walBytes * INTERVALS_A_DAY) / 1e9, 'GB'),
        show(`memory of web, ${of}`, await readRssMb(stage.web.child), 'MB'),
        show(`memory of worker, ${of}`, await readRssMb(worker.child), 'MB'),
      )
      if (day !== DAYS.at(-1)) continue
      const after = await readSizes(sql)
      for (const [table, bytes] of Object.entries(after)) {
        const each = (bytes - (before[table] ?? 0)) / count
        if (each >= 1) measures.push(show(`bytes of ${table} for one`, each, 'B'))
      }
    }
    return [...measures, ...(await measureRechecks(stage, worker, show))]
  } finally {
    await worker.stop()
  }
}

/** A transaction that became final is asked about once more, a day later: here, now. */
async function measureRechecks(
  stage: Stage,
  worker: Started,
  show: (name: string, result: number, unit: string) => Measure,
): Promise<Measure[]> {
  const { sql } = stage.database
  await sql`checkpoint`
  await resetCalls(stage.gateway)
  await sql`
    update transactions set reconcile_at = now() where (merchant_code, transaction_id) in (
      select merchant_code, transaction_id from transactions where reconcile_at > now()
      order by reconcile_at desc limit ${RECHECKED})`
  const { cpu, walBytes } = await measureBoth(stage, worker, async () => {
    await untilCalled(stage.gateway, 'QUERY_PT', RECHECKED)
    await untilFed(sql)
  })
  return [
    show('CPU of the service for a recheck', cpu.own / RECHECKED, 'ms'),
    show('CPU of Postgres for a recheck', cpu.postgres / RECHECKED, 'ms'),
    show('WAL of a recheck', walBytes / RECHECKED / 1e3, 'kB'),
  ]
}

/** The CPU of both processes of the service and of Postgres, and the log that is written. */
async function measureBoth(
  { web, database: { sql } }: Stage,
  worker: Started,
  work: () => Promise<void>,
): Promise<{ cpu: Cpu; walBytes: number }> {
  const [from] = await sql`select pg_current_wal_lsn()::text as lsn`
  const { result, cpu } = await measureCpu(web.child, sql, async () => {
    return await measureCpu(worker.child, sql, work)
  })
  const [row] = await sql`
    select pg_wal_lsn_diff(pg_current_wal_lsn(), ${from?.lsn}::pg_lsn)::float8 as bytes`
  const own = cpu.own + result.cpu.own
  return { cpu: { own, postgres: cpu.postgres }, walBytes: row?.bytes ?? 0 }
}

/** Until nothing is due or claimed, and every event is in the feed. */
async function untilFed(sql: postgres.Sql): Promise<void> {
  for (;;) {
    const rows = await sql`
      (select from transactions where due_at is not null limit 1) union all (select from event_outbox limit 1)`
    if (rows.length === 0) return
    await sleep(50)
  }
}

async function readSizes(sql: postgres.Sql): Promise<Record<string, number>> {
  const rows = await sql<{ name: string; bytes: number }[]>`
    select relname::text as name, pg_total_relation_size(oid)::float8 as bytes from pg_class
    where relkind = 'r' and relnamespace = 'public'::regnamespace`
  return Object.fromEntries(rows.map(({ name, bytes }) => [name, bytes]))
}
