import { Pool } from 'undici'
import { readRssMb } from './cpu.ts'
import { ACCOUNT, makeNotification } from './notifications.ts'
import { startService } from './processes.ts'
import { type Measure, median } from './report.ts'
import { describeLatencies } from './rounds.ts'
import type { Stage } from './stage.ts'

const READERS = 1_000
const HEADERS = { authorization: `Bearer ${ACCOUNT.apiKey}` }

/** A thousand readers wait on as many transactions, and all of them change at once. */
export async function measureWaiters(
  { web, database: { sql } }: Stage,
  size: number,
): Promise<Measure> {
  const before = await readRssMb(web.child)
  const ids = Array.from({ length: READERS }, (_, n) => `W${Date.now()}X${n}`)
  await sql`
    insert into transactions (merchant_code, transaction_id)
    select ${ACCOUNT.merchantCode}, id from unnest(${ids}::text[]) as id`
  const pool = new Pool(web.url, { connections: READERS, headersTimeout: 60_000 })
  let answered: number[] = []
  const waiting = ids.map(async (id) => {
    const path = `/v1/transactions/${id}?wait=60`
    const answer = await pool.request({ path, method: 'GET', headers: HEADERS })
    await answer.body.dump()
    answered.push(performance.now())
  })
  await untilWaiting(web.url)
  const during = await readRssMb(web.child)
  const started = performance.now()
  await sql`
    with changed as (
      update transactions set final = true, state = 'failed'
      where merchant_code = ${ACCOUNT.merchantCode} and transaction_id = any(${ids}::text[])
      returning merchant_code, transaction_id)
    select pg_notify('transaction_changed', '[' || to_json(merchant_code) || ',' || to_json(transaction_id) || ']')
    from changed`
  await Promise.all(waiting)
  answered = answered.map((at) => at - started)
  await pool.close()
  return {
    name: '1,000 waiting readers, change → answer p50 (ms)',
    size,
    result: median(answered),
    value: describeLatencies(answered, 0),
    baseline: `${(during - before).toFixed(0)} MB while they wait`,
  }
}

async function untilWaiting(url: string): Promise<void> {
  for (;;) {
    const answer = await fetch(`${url}/metrics`)
    const waiting = /^waiting_readers (\d+)/m.exec(await answer.text())?.[1]
    if (Number(waiting) >= READERS) return
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
}

/** From the notification's sending to a readable, final payment; the gateway answers at once. */
export async function measureReadable(stage: Stage, size: number): Promise<Measure> {
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
  return {
    name: 'notification → readable payment, gateway at 0 ms, p50 (ms)',
    size,
    result: median(taken),
    value: describeLatencies(taken),
    baseline: '',
    target: { atMost: 15 },
  }
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
