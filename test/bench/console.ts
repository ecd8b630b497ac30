import { Pool } from 'undici'
import { openDatabase } from '../../src/db/client.ts'
import { addVisitor } from '../support/console.ts'
import { type Measure, median } from './report.ts'
import { describeLatencies } from './rounds.ts'
import type { Stage } from './stage.ts'

/** Requests of each kind, one after the other. */
const REQUESTS = 300

/** What a person waits for at most (ms). */
const TARGET = { atMost: 50 }

/** Pages of the console as a person opens them: the search by each kind of id, and the story of a transaction. */
export async function measureConsole({ web, database }: Stage, size: number): Promise<Measure[]> {
  const own = openDatabase(database.url, 1)
  const { token } = await addVisitor(own, { name: `Bench ${size}`, roles: ['admin'] })
  await own.close()
  const percent = Math.min(100, (100 * 10 * REQUESTS) / Math.max(1, size))
  const rows = await database.sql<{ merchant: string; id: string; orderId: string }[]>`
    select merchant_code as merchant, transaction_id as id, order_id as "orderId"
    from transactions tablesample system (${percent}) repeatable (7) where final limit ${REQUESTS}`
  const pool = new Pool(web.url, { connections: 1 })
  const measure = async (name: string, status: number, paths: readonly string[]) => {
    const taken: number[] = []
    for (const path of paths) {
      const started = performance.now()
      const headers = { cookie: `session=${token}`, accept: 'text/html' }
      const answer = await pool.request({ path, method: 'GET', headers })
      await answer.body.text()
      taken.push(performance.now() - started)
      if (answer.statusCode !== status) throw new Error(`${path}: ${answer.statusCode}`)
    }
    const value = describeLatencies(taken)
    return { name, size, result: median(taken), value, baseline: '', target: TARGET }
  }
  const search = (text: string) => `/console?q=${encodeURIComponent(text)}`
  try {
    return [
      await measure(
        'console: search by id, p50 (ms)',
        303,
        rows.flatMap(({ id, orderId }) => [search(id), search(orderId), search(`P-${id}`)]),
      ),
      await measure(
        'console: search by the beginning of an id, p50 (ms)',
        200,
        rows.map(({ id }) => search(id.slice(0, 6))),
      ),
      await measure(
        'console: story of a transaction, p50 (ms)',
        200,
        rows.map(({ merchant, id }) => `/console/transactions/${merchant}/${id}`),
      ),
    ]
  } finally {
    await pool.close()
  }
}
