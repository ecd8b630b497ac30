import { randomUUID } from 'node:crypto'
import { Pool } from 'undici'
import { computeSecureHash } from '../../src/gateway/signature.ts'
import { ACCOUNT, makeNotification } from './notifications.ts'
import { describeRounds, type Measure, median, percentile } from './report.ts'
import { GATEWAY_MS, type Stage, sleepWorker, wakeWorker } from './stage.ts'

const REFUNDS = 200
const CONCURRENCY = 16
const ROUNDS = 3
const HEADERS = { authorization: `Bearer ${ACCOUNT.apiKey}`, 'content-type': 'application/json' }

/**
 * A request to refund, one at a time, beside one plain row committed to the same server, and beside the
 * lightest authenticated request plus such a commit, which is what HTTP alone costs; alternating. No
 * worker is awake, so that the refunds sent meanwhile are not in the figure.
 */
export async function measureRequest(stage: Stage, size: number): Promise<Measure[]> {
  const { sql } = stage.database
  const pool = new Pool(stage.web.url)
  wakeWorker(stage.worker)
  const payments = await makePayments(pool, 500)
  sleepWorker(stage.worker)
  await sql`create table if not exists bench_rows (id bigserial primary key, note text)`
  const times: { request: number[]; commit: number[]; light: number[] } = {
    request: [],
    commit: [],
    light: [],
  }
  for (const [at, payment] of payments.entries()) {
    const commit = await time(() => sql`insert into bench_rows (note) values (${payment})`)
    const light = await time(() => readLightly(pool))
    const request = await time(() => requestRefund(pool, payment))
    // The first ones only warm up.
    if (at < 200) continue
    times.commit.push(commit)
    times.light.push(light)
    times.request.push(request)
  }
  await pool.close()
  await sql`update refunds set status = 'failed', failure_source = 'service', due_at = null where status = 'pending'`
  const compare = (baseline: string, beside: number): Measure => ({
    name: `refund request → 202 p50 / ${baseline}`,
    size,
    result: median(times.request) / beside,
    value: `${median(times.request).toFixed(2)} ms, p99 ${percentile(times.request, 99).toFixed(2)}`,
    baseline: `${beside.toFixed(2)} ms`,
    growing: { figure: median(times.request), atMost: 1.3 },
  })
  return [
    compare('one plain single-row commit', median(times.commit)),
    compare('the lightest request and such a commit', median(times.light) + median(times.commit)),
  ]
}

async function readLightly(pool: Pool): Promise<void> {
  const answer = await pool.request({
    path: '/v1/refunds?limit=1',
    method: 'GET',
    headers: HEADERS,
  })
  await answer.body.dump()
}

/**
 * 200 refunds on 200 payments, taken in while the worker sleeps: from its waking until the gateway
 * accepted the last, beside the bare pairs of calls.
 */
export async function measureSending(stage: Stage, size: number): Promise<Measure> {
  const { sql } = stage.database
  const service = new Pool(stage.web.url, { connections: CONCURRENCY })
  const gateway = new Pool(stage.slowGatewayUrl, { connections: CONCURRENCY })
  const rates: { service: number[]; bare: number[] } = { service: [], bare: [] }
  for (let round = -1; round < ROUNDS; round += 1) {
    wakeWorker(stage.worker)
    const payments = await makePayments(service, REFUNDS)
    sleepWorker(stage.worker)
    const bareMs = await time(() => runConcurrently(payments, (id) => callInPairs(gateway, id)))
    await runConcurrently(payments, (id) => requestRefund(service, id))
    const serviceMs = await time(async () => {
      wakeWorker(stage.slowWorker)
      await untilAccepted(stage, payments)
    })
    sleepWorker(stage.slowWorker)
    // The first round only warms up.
    if (round < 0) continue
    rates.bare.push(REFUNDS / (bareMs / 1000))
    rates.service.push(REFUNDS / (serviceMs / 1000))
  }
  await Promise.all([service.close(), gateway.close()])
  await sql`update refunds set status = 'succeeded', due_at = null where status = 'accepted'`
  await sql`update transactions set due_at = null, lease_id = null where due_at is not null`
  return {
    name: `refunds sent and accepted / bare pairs of calls, gateway at ${GATEWAY_MS} ms`,
    size,
    result: median(rates.service) / median(rates.bare),
    value: describeRounds(rates.service, '/s'),
    baseline: describeRounds(rates.bare, '/s'),
    target: { atLeast: 0.4 },
  }
}

/** Payments known to the service; the bare gateway names them after their transactions. */
export async function makePayments(pool: Pool, count: number): Promise<string[]> {
  const ids: string[] = []
  await runConcurrently(Array.from({ length: count }), async () => {
    const { transactionId, body } = makeNotification()
    await post(pool, '/ipn', body)
    const path = `/v1/transactions/${transactionId}?wait=30`
    const answer = await pool.request({ path, method: 'GET', headers: HEADERS })
    if (!(await answer.body.text()).includes('"state":"paid"')) throw new Error('not paid')
    ids.push(`P-${transactionId}`)
  })
  return ids
}

async function requestRefund(pool: Pool, paymentId: string): Promise<void> {
  const path = `/v1/payments/${paymentId}/refunds`
  await post(pool, path, '{"amount":"10000"}', { 'idempotency-key': randomUUID() })
}

async function post(pool: Pool, path: string, body: string, more = {}): Promise<void> {
  const answer = await pool.request({
    path,
    method: 'POST',
    headers: { ...HEADERS, ...more },
    body,
  })
  const text = await answer.body.text()
  if (answer.statusCode >= 300) throw new Error(text)
}

async function untilAccepted({ database: { sql } }: Stage, payments: readonly string[]) {
  for (;;) {
    const [row] = await sql`
      select count(*)::int as n from refunds where payment_id = any(${[...payments]}) and status = 'accepted'`
    if (row?.n === payments.length) return
    await new Promise((resolve) => setTimeout(resolve, 25))
  }
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

export async function call(gateway: Pool, params: Record<string, unknown>): Promise<void> {
  const hash = computeSecureHash(params, ACCOUNT.secret, { prefix: 'svc', exclude: ['RequestID'] })
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

export async function time(work: () => PromiseLike<unknown>): Promise<number> {
  const started = performance.now()
  await work()
  return performance.now() - started
}
