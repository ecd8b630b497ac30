import { createBaselineTables, createDueIndex } from './baselines/tables.ts'
import type { Database } from './database.ts'
import type { Calls } from './gateway-calls.ts'
import { pause, type Started, startBaseline, startService } from './processes.ts'
import { type Measure, writeSize } from './report.ts'
import type { Stage } from './stage.ts'
import { type Side, syncAll } from './sync.ts'

/** The gateway marks each thousandth query. */
const MARK = 1_000

/**
 * A backlog on a database that was never analysed: how fast the last tenth is asked about, against the
 * first, by the service and by the naive sync; the gateway answers at once.
 */
export async function measureBacklog(stage: Stage): Promise<Measure[]> {
  return [await measureService(stage), await measureNaive(stage)]
}

async function measureService(stage: Stage): Promise<Measure> {
  const { server, gateway, profiles } = stage
  const database = await server.create('backlog')
  const intake = await startService(database.url, gateway.url, 'web', undefined)
  await forbidAnalyze(database)
  const worker = await startService(database.url, gateway.url, 'worker', profiles)
  const measure = await measureSide(stage, { worker, database, intake }, 'backlog', {
    atLeast: 0.85,
  })
  await server.drop(database)
  return measure
}

async function measureNaive(stage: Stage): Promise<Measure> {
  const { server, gateway } = stage
  const database = await server.create('backlog_naive')
  await createBaselineTables(database.sql)
  await createDueIndex(database.sql)
  await forbidAnalyze(database)
  const intake = await startBaseline('naive', database.url, gateway.url)
  const worker = await startBaseline('sync', database.url, gateway.url)
  const measure = await measureSide(stage, { worker, database, intake }, 'naive sync, backlog')
  await server.drop(database)
  return measure
}

async function measureSide(
  { effort, gateway, load }: Stage,
  side: Side,
  what: string,
  target?: Measure['target'],
): Promise<Measure> {
  const { backlog } = effort
  pause(side.worker)
  try {
    const { calls, seconds } = await syncAll(side, gateway, load, backlog)
    const tenth = Math.max(1, Math.floor(backlog / 10 / MARK))
    const { first, last } = readRates(calls, tenth)
    const part = writeSize(tenth * MARK)
    return {
      name: `${what} of ${writeSize(backlog)}, never analysed: last ${part} / first ${part}`,
      size: 0,
      result: last / first,
      value: `${last.toFixed(0)} /s`,
      baseline: `${first.toFixed(0)} /s; all of them ${(backlog / seconds).toFixed(0)} /s`,
      ...(target ? { target } : {}),
    }
  } finally {
    await stopAll([side.worker, side.intake])
  }
}

/** Queries a second in the first so many thousand, without the very first thousand, and in the last. */
function readRates({ marks }: Calls, thousands: number): { first: number; last: number } {
  const rate = (from: number, to: number) => {
    const [start, end] = [marks.at(from), marks.at(to)]
    if (start === undefined || end === undefined) return Number.NaN
    return (thousands * MARK) / ((end - start) / 1000)
  }
  return { first: rate(0, thousands), last: rate(-1 - thousands, -1) }
}

async function stopAll(all: readonly Started[]): Promise<void> {
  await Promise.all(all.map((one) => one.stop()))
}

/** Autovacuum still vacuums, but collects no statistics. */
async function forbidAnalyze({ sql }: Database): Promise<void> {
  const tables = await sql`select tablename from pg_tables where schemaname = 'public'`
  for (const { tablename } of tables) {
    await sql.unsafe(
      `alter table ${tablename} set (autovacuum_analyze_threshold = 2000000000, autovacuum_analyze_scale_factor = 100)`,
    )
  }
}
