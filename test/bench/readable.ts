import { Pool } from 'undici'
import { ACCOUNT, makeNotification } from './notifications.ts'
import { startService } from './processes.ts'
import { type Measure, median } from './report.ts'
import { describeLatencies } from './rounds.ts'
import type { Stage } from './stage.ts'

const HEADERS = { authorization: `Bearer ${ACCOUNT.apiKey}` }

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
