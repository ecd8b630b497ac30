import { randomUUID } from 'node:crypto'
import postgres from 'postgres'
import { Pool } from 'undici'
import { computeSecureHash } from '../../src/gateway/signature.ts'
import { ACCOUNT, acknowledge } from './intake.ts'
import { type Measure, median } from './report.ts'

const REFUNDS = 200
const CONCURRENCY = 16
const ROUNDS = 3
const HEADERS = { authorization: `Bearer ${ACCOUNT.apiKey}`, 'content-type': 'application/json' }

/** A request to refund, one at a time, beside one plain row committed to the same server; alternating. */
export async function measureRequest(serviceUrl: string, databaseUrl: string): Promise<Measure> {
  const pool = new Pool(serviceUrl)
  const sql = postgres(databaseUrl, { max: 1, onnotice: () => {} })
  await sql`create table if not exists bench_rows (id bigserial primary key, note text)`
  const payments = await makePayments(pool, 150)
  const times: { request: number[]; commit: number[] } = { request: [], commit: [] }
  for (const payment of payments) {
    times.commit.push(await time(() => sql`insert into bench_rows (note) values (${payment})`))
    times.request.push(await time(() => requestRefund(pool, payment)))
  }
  await Promise.all([pool.close(), sql.end()])
  const ratio = median(times.request) / median(times.commit)
  return {
    name: 'refund request → 202 p50 / one plain single-row commit',
    value: `${ratio.toFixed(2)} (${median(times.request).toFixed(2)} ms)`,
    baseline: `${median(times.commit).toFixed(2)} ms`,
    target: '≤ 2',
    met: ratio <= 2,
  }
}

/** 200 refunds on 200 payments until the gateway accepted them, beside the bare pairs of calls. */
export async function measureSending(
  serviceUrl: string,
  gatewayUrl: string,
  databaseUrl: string,
  delayMs: number,
): Promise<Measure> {
  const service = new Pool(serviceUrl, { connections: CONCURRENCY })
  const gateway = new Pool(gatewayUrl, { connections: CONCURRENCY })
  const sql = postgres(databaseUrl, { max: 1, onnotice: () => {} })
  const rates: { service: number[]; bare: number[] } = { service: [], bare: [] }
  for (let round = 0; round < ROUNDS; round += 1) {
    const payments = await makePayments(service, REFUNDS)
    const bareMs = await time(() => runConcurrently(payments, (id) => callInPairs(gateway, id)))
    const serviceMs = await time(async () => {
      const accepted = untilAccepted(sql, payments)
      await runConcurrently(payments, (id) => requestRefund(service, id))
      await accepted
    })
    rates.bare.push(REFUNDS / (bareMs / 1000))
    rates.service.push(REFUNDS / (serviceMs / 1000))
  }
  await Promise.all([service.close(), gateway.close(), sql.end()])
  const ratio = median(rates.service) / median(rates.bare)
  return {
    name: `refunds requested, sent and accepted / bare pairs of calls, gateway at ${delayMs} ms`,
    value: `${ratio.toFixed(2)} (${median(rates.service).toFixed(0)}/s)`,
    baseline: `${median(rates.bare).toFixed(0)}/s`,
    target: '≥ 0.4',
    met: ratio >= 0.4,
  }
}

/** Payments known to the service; the bare gateway names them after their transactions. */
async function makePayments(pool: Pool, count: number): Promise<string[]> {
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
    await new Promise((resolve) => setTimeout(resolve, 10))
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
