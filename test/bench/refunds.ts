import { randomUUID } from 'node:crypto'
import postgres from 'postgres'
import { Pool } from 'undici'
import { computeSecureHash } from '../../src/gateway/signature.ts'
import { ACCOUNT, acknowledge } from './intake.ts'
import type { Started } from './processes.ts'
import { type Measure, median } from './report.ts'

const REFUNDS = 200
const CONCURRENCY = 16
const ROUNDS = 3
const HEADERS = { authorization: `Bearer ${ACCOUNT.apiKey}`, 'content-type': 'application/json' }

/**
 * A request to refund, one at a time, beside one plain row committed to the same server, and beside the
 * lightest authenticated request plus such a commit, which is what HTTP alone costs; alternating. The
 * requests go to a process that only serves, so that the refunds sent meanwhile are not in the figure.
 * `worker` makes the payments and is stopped first.
 */
export async function measureRequest(
  worker: Started,
  web: Started,
  databaseUrl: string,
): Promise<Measure[]> {
  const maker = new Pool(worker.url)
  const payments = await makePayments(maker, 700)
  await maker.close()
  await worker.stop()
  const pool = new Pool(web.url)
  const sql = postgres(databaseUrl, { max: 1, onnotice: () => {} })
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
  await Promise.all([pool.close(), sql.end()])
  const [request, commit, light] = [times.request, times.commit, times.light].map(median)
  return [
    compareRequest('one plain single-row commit', request ?? 0, commit ?? 0),
    compareRequest(
      'the lightest request and such a commit',
      request ?? 0,
      (light ?? 0) + (commit ?? 0),
    ),
  ]
}

function compareRequest(baseline: string, request: number, beside: number): Measure {
  const ratio = request / beside
  return {
    name: `refund request → 202 p50 / ${baseline}`,
    value: `${ratio.toFixed(2)} (${request.toFixed(2)} ms)`,
    baseline: `${beside.toFixed(2)} ms`,
    target: '≤ 2',
    met: ratio <= 2,
  }
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
export async function measureSending(
  worker: Started,
  web: Started,
  gatewayUrl: string,
  databaseUrl: string,
  delayMs: number,
): Promise<Measure> {
  const service = new Pool(web.url, { connections: CONCURRENCY })
  const gateway = new Pool(gatewayUrl, { connections: CONCURRENCY })
  const sql = postgres(databaseUrl, { max: 1, onnotice: () => {} })
  const rates: { service: number[]; bare: number[] } = { service: [], bare: [] }
  for (let round = -1; round < ROUNDS; round += 1) {
    const payments = await makePayments(service, REFUNDS)
    const bareMs = await time(() => runConcurrently(payments, (id) => callInPairs(gateway, id)))
    worker.child.kill('SIGSTOP')
    await runConcurrently(payments, (id) => requestRefund(service, id))
    const serviceMs = await time(async () => {
      worker.child.kill('SIGCONT')
      await untilAccepted(sql, payments)
    })
    // The first round only warms up.
    if (round < 0) continue
    rates.bare.push(REFUNDS / (bareMs / 1000))
    rates.service.push(REFUNDS / (serviceMs / 1000))
  }
  await Promise.all([service.close(), gateway.close(), sql.end()])
  const ratio = median(rates.service) / median(rates.bare)
  return {
    name: `refunds sent and accepted / bare pairs of calls, gateway at ${delayMs} ms`,
    value: `${ratio.toFixed(2)} (${median(rates.service).toFixed(0)}/s)`,
    baseline: `${median(rates.bare).toFixed(0)}/s`,
    target: '≥ 0.4',
    met: ratio >= 0.4,
  }
}

/** Payments known to the service; the bare gateway names them after their transactions. */
export async function makePayments(pool: Pool, count: number): Promise<string[]> {
  const ids: string[] = []
  await runConcurrently(Array.from({ length: count }), async () => {
    const { transactionId } = await acknowledge(pool)
    const path = `/v1/transactions/${transactionId}?wait=30`
    const answer = await pool.request({ path, method: 'GET', headers: HEADERS })
    if (!(await answer.body.text()).includes('"state":"paid"')) throw new Error('not paid')
    ids.push(`P-${transactionId}`)
  })
  return ids
}

async function requestRefund(pool: Pool, paymentId: string): Promise<void> {
  const answer = await pool.request({
    path: `/v1/payments/${paymentId}/refunds`,
    method: 'POST',
    headers: { ...HEADERS, 'idempotency-key': randomUUID() },
    body: '{"amount":"10000"}',
  })
  const text = await answer.body.text()
  if (answer.statusCode !== 202) throw new Error(text)
}

async function untilAccepted(sql: postgres.Sql, payments: readonly string[]): Promise<void> {
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

async function call(gateway: Pool, params: Record<string, unknown>): Promise<void> {
  const hash = computeSecureHash(params, ACCOUNT.secret, { prefix: 'svc', exclude: ['RequestID'] })
  const answer = await gateway.request({
    path: '/api/v1/paygate/svcpay',
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ ...params, svc_SecureHash: hash }),
  })
  await answer.body.dump()
}

async function runConcurrently<T>(items: readonly T[], work: (item: T) => Promise<void>) {
  const queue = items.values()
  await Promise.all(
    Array.from({ length: CONCURRENCY }, async () => {
      for (const item of queue) await work(item)
    }),
  )
}

async function time(work: () => PromiseLike<unknown>): Promise<number> {
  const started = performance.now()
  await work()
  return performance.now() - started
}
