import { setTimeout as sleep } from 'node:timers/promises'
import type postgres from 'postgres'
import { Pool } from 'undici'
import { createDueIndex, dropDueIndex } from './baselines/tables.ts'
import { measureCpu } from './cpu.ts'
import type { Database } from './database.ts'
import type { Load } from './load-client.ts'
import { ACCOUNT, makeNotification } from './notifications.ts'
import {
  pause,
  resetCalls,
  resume,
  type Started,
  startBaseline,
  startService,
  untilCalled,
} from './processes.ts'
import { type Measure, makeFigure, median } from './report.ts'
import { alternate, type Comparison, compare, describeLatencies } from './rounds.ts'
import { GATEWAY_MS, type Stage, settleAll } from './stage.ts'

/** A program that asks about what is due, its database, and where notifications for it are posted. */
type Side = { worker: Started; database: Database; intake: Started }

const NAMES = ['service', 'naive'] as const

/** A notification until its payment can be read; due transactions asked about by one worker, beside the naive sync. */
export async function measureSync(stage: Stage, size: number): Promise<Measure[]> {
  await settleAll(stage)
  const readable = await measureReadable(stage, size)
  await settleAll(stage)
  await createDueIndex(stage.beside.sql)
  try {
    return [
      readable,
      ...(await measureWith(stage, size, stage.gateway, 0)),
      ...(await measureWith(stage, size, stage.slowGateway, GATEWAY_MS)),
    ]
  } finally {
    await dropDueIndex(stage.beside.sql)
  }
}

async function measureWith(stage: Stage, size: number, gateway: Started, delayMs: number) {
  const { database, beside, web, naive, profiles, load, effort } = stage
  const sides = {
    service: {
      worker: await startService(database.url, gateway.url, 'worker', profiles),
      database,
      intake: web,
    },
    naive: {
      worker: await startBaseline('sync', beside.url, gateway.url),
      database: beside,
      intake: naive,
    },
  }
  pause(sides.service.worker)
  pause(sides.naive.worker)
  try {
    const of = await alternate(NAMES, effort.rounds, async (name) => {
      const { seconds, own, postgres } = await syncAll(sides[name], gateway, load, effort.synced)
      const each = 1000 / effort.synced
      return { rate: effort.synced / seconds, own: own * each, postgres: postgres * each }
    })
    const where = `gateway at ${delayMs} ms`
    return describe(of, size, where, delayMs === 0)
  } finally {
    await Promise.all([sides.service.worker.stop(), sides.naive.worker.stop()])
  }
}

type Round = { rate: number; own: number; postgres: number }

function describe(
  of: (name: (typeof NAMES)[number]) => Round[],
  size: number,
  where: string,
  isAtOnce: boolean,
): Measure[] {
  const row = (
    name: string,
    unit: string,
    figure: (round: Round) => number,
    more: Partial<Comparison>,
  ) =>
    compare({
      name,
      size,
      unit,
      service: of('service').map(figure),
      baseline: of('naive').map(figure),
      ...more,
    })
  const cpu = row(
    `CPU of a transaction asked, answered, stored, service and Postgres / naive sync, ${where}`,
    'µs',
    ({ own, postgres }) => own + postgres,
    isAtOnce ? { growth: 1.2 } : {},
  )
  const postgres = row(
    `CPU of a transaction, claim and commit in Postgres / naive sync, ${where}`,
    'µs',
    (round) => round.postgres,
    isAtOnce ? { growth: 1.2 } : {},
  )
  const rate = row(`sync / naive sync, 16 calls at once, ${where}`, '/s', (round) => round.rate, {
    target: { atLeast: isAtOnce ? 1 : 1.08 },
  })
  if (!isAtOnce) return [rate, cpu]
  // The target is the absolute figure.
  const ms = (cpu.growing?.figure ?? Number.NaN) / 1000
  const total = makeFigure(
    `CPU of a transaction asked, answered, stored (ms), ${where}`,
    size,
    ms,
    {
      baseline: `naive sync ${((cpu.growing?.beside ?? Number.NaN) / 1000).toFixed(2)} ms`,
      target: { atMost: 1 },
    },
  )
  return [rate, total, cpu, postgres]
}

/** Makes `count` transactions due through the intake while the worker sleeps, then lets it settle them. */
async function syncAll(
  { worker, database: { sql }, intake }: Side,
  gateway: Started,
  load: Load,
  count: number,
): Promise<{ seconds: number; own: number; postgres: number }> {
  await load.run({ url: intake.url, kind: 'ipn', connections: 64, count })
  await sql`checkpoint`
  await resetCalls(gateway)
  const { result, cpu } = await measureCpu(worker.child, sql, async () => {
    const started = performance.now()
    resume(worker)
    await untilCalled(gateway, 'QUERY_PT', count)
    await untilNothingIsDue(sql)
    return (performance.now() - started) / 1000
  })
  pause(worker)
  return { seconds: result, ...cpu }
}

/** Reads by the index, whatever the statistics say. */
async function untilNothingIsDue(sql: postgres.Sql): Promise<void> {
  for (;;) {
    const rows = await sql.begin(async (tx) => {
      await tx`set local enable_seqscan = off`
      return await tx`select from transactions where due_at is not null limit 1`
    })
    if (rows.length === 0) return
    await sleep(2)
  }
}

const HEADERS = { authorization: `Bearer ${ACCOUNT.apiKey}` }

/** From the notification's sending to a readable, final payment; the gateway answers at once. */
async function measureReadable(stage: Stage, size: number): Promise<Measure> {
  const { database, gateway, web, profiles } = stage
  const worker = await startService(database.url, gateway.url, 'worker', profiles)
  const pool = new Pool(web.url)
  const taken: number[] = []
  try {
    for (let i = 0; i < 300; i += 1) {
      const started = performance.now()
      await readPaid(pool)
      if (i >= 50) taken.push(performance.now() - started)
    }
  } finally {
    await pool.close()
    await worker.stop()
  }
  const name = 'notification → readable payment, gateway at 0 ms, p50 (ms)'
  const value = describeLatencies(taken)
  return makeFigure(name, size, median(taken), { value, target: { atMost: 11 } })
}

async function readPaid(pool: Pool): Promise<void> {
  const { transactionId, body } = makeNotification()
  const headers = { 'content-type': 'application/json' }
  const ack = await pool.request({ path: '/ipn', method: 'POST', headers, body })
  await ack.body.dump()
  const path = `/v1/transactions/${transactionId}?wait=10`
  const answer = await pool.request({ path, method: 'GET', headers: HEADERS })
  const text = await answer.body.text()
  if (!text.includes('"state":"paid"')) throw new Error(`not paid: ${text}`)
}
