import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { Pool } from 'undici'
import { sign } from './baselines/notification.ts'
import { ACCOUNT } from './notifications.ts'
import { pause, resetCalls, resume, type Started, startService, untilCalled } from './processes.ts'
import { type Measure, median } from './report.ts'
import { alternate, compare } from './rounds.ts'
import { GATEWAY_MS, type Stage } from './stage.ts'

const CONCURRENCY = 16
/** Requests of a round, one at a time. */
const REQUESTS = 60
const HEADERS = { authorization: `Bearer ${ACCOUNT.apiKey}`, 'content-type': 'application/json' }
let taken = 0

export async function measureRefunds(stage: Stage, size: number): Promise<Measure[]> {
  return [await measureRequests(stage, size), await measureSending(stage, size)]
}

/** Requests to refund, one at a time, beside a handler with one insert; no worker is awake. */
async function measureRequests(stage: Stage, size: number): Promise<Measure> {
  const of = await alternate(['web', 'naive'] as const, stage.effort.rounds, async (name) => {
    const pool = new Pool(stage[name].url)
    const times: number[] = []
    for (const payment of await takePayments(stage, REQUESTS)) {
      times.push(await time(() => requestRefund(pool, payment)))
    }
    await pool.close()
    return median(times)
  })
  await endRefunds(stage)
  return compare({
    name: 'refund request → 202, one at a time, p50 / naive insert',
    size,
    unit: 'ms',
    digits: 2,
    service: of('web'),
    baseline: of('naive'),
    target: { atMost: 3 },
    growth: 1.2,
  })
}

/**
 * Refunds taken in while the worker sleeps: from its waking until the gateway accepted the last, beside
 * bare pairs of calls, a QUERY_PT and a REFUND, without a database.
 */
async function measureSending(stage: Stage, size: number): Promise<Measure> {
  const { database, slowGateway, profiles, effort, web } = stage
  const { refunded } = effort
  const worker = await startService(database.url, slowGateway.url, 'worker', profiles)
  pause(worker)
  const service = new Pool(web.url, { connections: CONCURRENCY })
  const gateway = new Pool(slowGateway.url, { connections: CONCURRENCY })
  try {
    const of = await alternate(['service', 'pairs'] as const, effort.rounds, async (name) => {
      const payments = await takePayments(stage, refunded)
      if (name === 'pairs') {
        const ms = await time(() => runConcurrently(payments, (id) => callInPairs(gateway, id)))
        return refunded / (ms / 1000)
      }
      await runConcurrently(payments, (id) => requestRefund(service, id))
      return refunded / ((await sendAll(stage, worker, payments)) / 1000)
    })
    return compare({
      name: `refunds sent and accepted / bare pairs of calls, gateway at ${GATEWAY_MS} ms`,
      size,
      unit: '/s',
      service: of('service'),
      baseline: of('pairs'),
      target: { atLeast: 0.35 },
    })
  } finally {
    await Promise.all([service.close(), gateway.close(), worker.stop()])
  }
}

async function sendAll(
  stage: Stage,
  worker: Started,
  payments: readonly string[],
): Promise<number> {
  const { slowGateway, database } = stage
  await resetCalls(slowGateway)
  const ms = await time(async () => {
    resume(worker)
    await untilCalled(slowGateway, 'REFUND', payments.length)
    for (;;) {
      const [row] = await database.sql`
        select count(*)::int as n from refunds
        where merchant_code = ${ACCOUNT.merchantCode} and payment_id = any(${[...payments]})
          and status = 'accepted'`
      if (row?.n === payments.length) return
      await sleep(5)
    }
  })
  await pauseIdle(stage, worker)
  await endRefunds(stage)
  return ms
}

/** Pauses a worker while it is in no transaction: others would wait for its locks. */
async function pauseIdle({ database }: Stage, worker: Started): Promise<void> {
  for (;;) {
    pause(worker)
    const open = await database.sql`
      select from pg_stat_activity where datname = current_database()
        and application_name = 'ipn-processor' and state <> 'idle'`
    if (open.length === 0) return
    resume(worker)
    await sleep(5)
  }
}

/** Payments of the fill that were not refunded yet, the same in both databases. */
async function takePayments({ database: { sql } }: Stage, count: number): Promise<string[]> {
  const rows = await sql`
    select payment_id as id from payments where merchant_code = ${ACCOUNT.merchantCode}
    order by payment_id offset ${taken} limit ${count}`
  if (rows.length < count) throw new Error('too few payments are stored to be refunded')
  taken += count
  return rows.map(({ id }) => id)
}

/** Refunds of earlier rounds are not followed while later ones are measured. */
async function endRefunds({ database: { sql } }: Stage): Promise<void> {
  await sql`
    update refunds set status = 'failed', failure_source = 'service', due_at = null
    where status = 'pending'`
  await sql`update refunds set status = 'succeeded', due_at = null where status = 'accepted'`
  await sql`update transactions set due_at = null, lease_id = null where due_at is not null`
}

async function requestRefund(pool: Pool, paymentId: string): Promise<void> {
  const answer = await pool.request({
    path: `/v1/payments/${paymentId}/refunds`,
    method: 'POST',
    headers: { ...HEADERS, 'idempotency-key': randomUUID() },
    body: '{"amount":"10000"}',
  })
  const text = await answer.body.text()
  if (answer.statusCode !== 202) throw new Error(`${answer.statusCode} ${text}`)
}

async function callInPairs(gateway: Pool, paymentId: string): Promise<void> {
  const common = { svc_MerchantCode: ACCOUNT.merchantCode, svc_Version: '1' }
  await call(gateway, { ...common, svc_Command: 'QUERY_PT', svc_TransactionID: paymentId.slice(2) })
  await call(gateway, {
    ...common,
    svc_Command: 'REFUND',
    svc_RequestID: randomUUID(),
    svc_PaymentID: paymentId,
    svc_Amount: 10_000,
  })
}

async function call(gateway: Pool, params: Record<string, unknown>): Promise<void> {
  const hash = sign(params, ACCOUNT.secret, ['svc_RequestID'])
  const answer = await gateway.request({
    path: '/api/v1/paygate/svcpay',
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ ...params, svc_SecureHash: hash }),
  })
  await answer.body.dump()
}

export async function runConcurrently<T>(items: readonly T[], work: (item: T) => Promise<void>) {
  const queue = items.values()
  await Promise.all(
    Array.from({ length: CONCURRENCY }, async () => {
      for (const item of queue) await work(item)
    }),
  )
}

async function time(work: () => Promise<unknown>): Promise<number> {
  const started = performance.now()
  await work()
  return performance.now() - started
}
