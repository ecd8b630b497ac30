import { Pool } from 'undici'
import { ACCOUNT, makeNotification } from './notifications.ts'
import { call, runConcurrently, time } from './refunds.ts'
import { describeRounds, type Measure, median, percentile } from './report.ts'
import { GATEWAY_MS, type Stage, sleepWorker, wakeWorker } from './stage.ts'

const TRANSACTIONS = 2_000
const ROUNDS = 3

/**
 * Due transactions asked about, stored and settled by one worker, beside a bare loop that makes the
 * same calls at the same concurrency and forgets the answers.
 */
export async function measureSync(stage: Stage, size: number): Promise<Measure> {
  const { sql } = stage.database
  await settleAll(stage)
  const gateway = new Pool(stage.slowGatewayUrl, { connections: 16 })
  const rates: { service: number[]; bare: number[] } = { service: [], bare: [] }
  for (let round = -1; round < ROUNDS; round += 1) {
    const ids = Array.from({ length: TRANSACTIONS }, () => makeNotification().transactionId)
    const bareMs = await time(() => runConcurrently(ids, (id) => queryBarely(gateway, id)))
    await sql`
      insert into transactions (merchant_code, transaction_id, due_at)
      select ${ACCOUNT.merchantCode}, id, now() from unnest(${ids}::text[]) as id`
    const serviceMs = await time(async () => {
      wakeWorker(stage.slowWorker)
      await untilSettled(stage)
    })
    sleepWorker(stage.slowWorker)
    // The first round only warms up.
    if (round < 0) continue
    rates.bare.push(TRANSACTIONS / (bareMs / 1000))
    rates.service.push(TRANSACTIONS / (serviceMs / 1000))
  }
  await gateway.close()
  return {
    name: `sync, transactions asked about and stored / bare calls, gateway at ${GATEWAY_MS} ms`,
    size,
    result: median(rates.service) / median(rates.bare),
    value: describeRounds(rates.service, '/s'),
    baseline: describeRounds(rates.bare, '/s'),
    target: { atLeast: 0.6 },
  }
}

/** From the notification's sending to a readable, final payment; the gateway answers at once. */
export async function measureReadable(stage: Stage, size: number): Promise<Measure> {
  await settleAll(stage)
  wakeWorker(stage.worker)
  const pool = new Pool(stage.web.url)
  const taken: number[] = []
  for (let i = 0; i < 300; i += 1) {
    const { transactionId, body } = makeNotification()
    const started = performance.now()
    const headers = { 'content-type': 'application/json' }
    const ack = await pool.request({ path: '/ipn', method: 'POST', headers, body })
    await ack.body.dump()
    const answer = await pool.request({
      path: `/v1/transactions/${transactionId}?wait=10`,
      method: 'GET',
      headers: { authorization: `Bearer ${ACCOUNT.apiKey}` },
    })
    const text = await answer.body.text()
    if (!text.includes('"state":"paid"')) throw new Error(`not paid: ${text}`)
    if (i >= 50) taken.push(performance.now() - started)
  }
  await pool.close()
  sleepWorker(stage.worker)
  return {
    name: 'notification → readable payment p50 (ms), gateway at 0 ms',
    size,
    result: median(taken),
    value: `p50 ${median(taken).toFixed(1)} ms, p99 ${percentile(taken, 99).toFixed(1)} ms`,
    baseline: '',
    growing: { figure: median(taken), atMost: 1.3 },
    target: { atMost: 15 },
  }
}

/** What earlier measures left due is not in the figures of the next. */
export async function settleAll({ database: { sql } }: Stage): Promise<void> {
  await sql`update transactions set due_at = null, lease_id = null, claimed = want where due_at is not null`
  // No life has such an update; clearing up behind it would run into what is measured next.
  await sql`vacuum analyze transactions`
  await sql`checkpoint`
}

async function untilSettled({ database: { sql } }: Stage): Promise<void> {
  for (;;) {
    const [row] =
      await sql`select exists (select from transactions where due_at is not null) as left`
    if (!row?.left) return
    await new Promise((resolve) => setTimeout(resolve, 10))
  }
}

async function queryBarely(gateway: Pool, transactionId: string): Promise<void> {
  await call(gateway, {
    svc_MerchantCode: ACCOUNT.merchantCode,
    svc_Version: '1',
    svc_Command: 'QUERY_PT',
    svc_TransactionID: transactionId,
  })
}
