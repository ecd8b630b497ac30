import { Pool } from 'undici'
import { latencyOf, rateOf } from './load-client.ts'
import { ACCOUNT } from './notifications.ts'
import { readRssMb } from './processes.ts'
import { describeRounds, type Measure, median, percentile } from './report.ts'
import type { Stage } from './stage.ts'

const ROUNDS = 3
/** So long it takes until the compiler has seen what is asked (ms). */
const WARM_UP_MS = 8_000
const CONNECTIONS = 32
const HEADERS = { authorization: `Bearer ${ACCOUNT.apiKey}` }

/** Reads of one transaction a second, beside the same HTTP stack answering a constant. */
export async function measureReads(stage: Stage, size: number): Promise<Measure[]> {
  const { load, web, constant, database } = stage
  const rows =
    await database.sql`select transaction_id as id from transactions where final limit 2000`
  const paths = rows.map(({ id }) => `/v1/transactions/${id}`)
  const rates: { web: number[]; constant: number[] } = { web: [], constant: [] }
  const latencies: number[] = []
  const job = { kind: 'get' as const, connections: CONNECTIONS, headers: HEADERS, paths }
  for (let round = -1; round < ROUNDS; round += 1) {
    const forMs = round < 0 ? WARM_UP_MS : 3000
    const own = await load.run({ ...job, url: web.url, forMs })
    const bare = await load.run({ ...job, url: constant.url, forMs })
    if (round < 0) continue
    rates.web.push(rateOf(own))
    rates.constant.push(rateOf(bare))
  }
  for (let round = 0; round < ROUNDS; round += 1) {
    const alone = { ...job, connections: 1, url: web.url, count: 500 }
    latencies.push(latencyOf(await load.run(alone), 50))
  }
  return [
    {
      name: 'a transaction by id / a constant answer',
      size,
      result: median(rates.web) / median(rates.constant),
      value: describeRounds(rates.web, '/s'),
      baseline: describeRounds(rates.constant, '/s'),
      target: { atLeast: 0.5 },
    },
    {
      name: 'a transaction by id, one at a time, p50 (ms)',
      size,
      result: median(latencies),
      value: describeRounds(latencies, 'ms', 2),
      baseline: '',
      growing: { figure: median(latencies), atMost: 1.3 },
    },
    await measurePages(stage, size),
  ]
}

/** Pages of the newest transactions, each behind the one before. */
async function measurePages({ web }: Stage, size: number): Promise<Measure> {
  const pool = new Pool(web.url)
  const taken: number[] = []
  let cursor = ''
  for (let page = 0; page < 100; page += 1) {
    const path = `/v1/transactions?limit=50${cursor && `&cursor=${encodeURIComponent(cursor)}`}`
    const started = performance.now()
    const answer = await pool.request({ path, method: 'GET', headers: HEADERS })
    const body: unknown = await answer.body.json()
    taken.push(performance.now() - started)
    const next =
      typeof body === 'object' && body !== null && 'nextCursor' in body && body.nextCursor
    if (typeof next !== 'string') break
    cursor = next
  }
  await pool.close()
  return {
    name: 'a page of 50 transactions, p50 (ms)',
    size,
    result: median(taken),
    value: `p50 ${median(taken).toFixed(1)} ms, p99 ${percentile(taken, 99).toFixed(1)} ms`,
    baseline: '',
    growing: { figure: median(taken), atMost: 1.3 },
  }
}

/** A thousand readers wait on as many transactions, and all of them change at once. */
export async function measureWaiters(
  { web, database: { sql } }: Stage,
  size: number,
): Promise<Measure> {
  const count = 1000
  const before = await readRssMb(web.child)
  const ids = Array.from({ length: count }, (_, n) => `W${Date.now()}X${n}`)
  await sql`
    insert into transactions (merchant_code, transaction_id)
    select ${ACCOUNT.merchantCode}, id from unnest(${ids}::text[]) as id`
  const pool = new Pool(web.url, { connections: count, headersTimeout: 60_000 })
  let answered: number[] = []
  const waiting = ids.map(async (id) => {
    const answer = await pool.request({
      path: `/v1/transactions/${id}?wait=60`,
      method: 'GET',
      headers: HEADERS,
    })
    await answer.body.dump()
    answered.push(performance.now())
  })
  await untilWaiting(web.url, count)
  const during = await readRssMb(web.child)
  const started = performance.now()
  await sql`
    with changed as (
      update transactions set final = true, state = 'failed' where merchant_code = ${ACCOUNT.merchantCode} and transaction_id = any(${ids}::text[])
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
    value: `p50 ${median(answered).toFixed(0)} ms, p99 ${percentile(answered, 99).toFixed(0)} ms`,
    growing: { figure: median(answered), atMost: 1.3 },
    baseline: `${(during - before).toFixed(0)} MB while they wait`,
  }
}

async function untilWaiting(url: string, count: number): Promise<void> {
  for (;;) {
    const answer = await fetch(`${url}/metrics`)
    const waiting = /^waiting_readers (\d+)/m.exec(await answer.text())?.[1]
    if (Number(waiting) >= count) return
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
}
