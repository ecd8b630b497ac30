import { Pool } from 'undici'
import { rateOf } from './load-client.ts'
import { ACCOUNT } from './notifications.ts'
import { type Measure, makeFigure, median } from './report.ts'
import { alternate, compare, describeLatencies } from './rounds.ts'
import type { Stage } from './stage.ts'

const CONNECTIONS = 64
const HEADERS = { authorization: `Bearer ${ACCOUNT.apiKey}` }
const NAMES = ['web', 'naive'] as const

/** Reads of one transaction by its id, at 64 connections and one at a time. */
export async function measureReads(stage: Stage, size: number): Promise<Measure[]> {
  const { load, database, effort } = stage
  const rows = await database.sql`
    select transaction_id as id from transactions where final order by first_seen_at limit 2000`
  const paths = rows.map(({ id }) => `/v1/transactions/${id}`)
  const job = { kind: 'get', headers: HEADERS, paths } as const
  const rates = await alternate(NAMES, effort.rounds, async (name) => {
    const { url } = stage[name]
    return rateOf(await load.run({ ...job, url, connections: CONNECTIONS, forMs: effort.roundMs }))
  })
  const alone = await alternate(NAMES, effort.rounds, async (name) => {
    const { url } = stage[name]
    return median((await load.run({ ...job, url, connections: 1, count: 500 })).latencies)
  })
  return [
    compare({
      name: 'read by id, 64 connections / naive',
      size,
      unit: '/s',
      service: rates('web'),
      baseline: rates('naive'),
      target: { atLeast: 1.2 },
    }),
    compare({
      name: 'read by id, one at a time, p50 / naive',
      size,
      unit: 'ms',
      digits: 2,
      service: alone('web'),
      baseline: alone('naive'),
      growth: 1.2,
    }),
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
  return makeFigure('a page of 50 transactions, p50 (ms)', size, median(taken), {
    value: describeLatencies(taken),
  })
}
