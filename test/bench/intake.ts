import { Pool } from 'undici'
import { computeSecureHash } from '../../src/gateway/signature.ts'
import type { Measure } from './report.ts'
import { median, percentile } from './report.ts'

export const ACCOUNT = {
  merchantCode: 'BENCH',
  secret: 'bench-secret',
  apiKey: 'bench-key-with-every-scope-0123456789',
}

const ROUNDS = 7
const PER_ROUND = 150
let serial = 0

/** A signed notification about a transaction nobody has heard of. */
function makeNotification(): { transactionId: string; body: string } {
  serial += 1
  const transactionId = `B${Date.now()}X${serial}`
  const params = {
    svc_Command: 'PAY',
    svc_MerchantCode: ACCOUNT.merchantCode,
    svc_TransactionID: transactionId,
    svc_OrderID: `O${serial}`,
    svc_Currency: 'VND',
    svc_ResponseCode: 0,
  }
  const hash = computeSecureHash(params, ACCOUNT.secret, { prefix: 'svc', exclude: [] })
  return { transactionId, body: JSON.stringify({ ...params, svc_SecureHash: hash }) }
}

/** Sends a signed notification about a new transaction; resolves with its acknowledgement. */
export async function acknowledge(pool: Pool): Promise<{ transactionId: string; ms: number }> {
  const { transactionId, body } = makeNotification()
  const headers = { 'content-type': 'application/json' }
  const started = performance.now()
  const answer = await pool.request({ path: '/ipn', method: 'POST', headers, body })
  await answer.body.dump()
  if (answer.statusCode !== 200) throw new Error(`acknowledged with ${answer.statusCode}`)
  return { transactionId, ms: performance.now() - started }
}

/** Acknowledgement one request at a time, beside one insert per request; alternating rounds. */
export async function measureAck(
  how: string,
  serviceUrl: string,
  naiveUrl: string,
): Promise<Measure> {
  const service = new Pool(serviceUrl)
  const naive = new Pool(naiveUrl)
  const times = { service: [] as number[], naive: [] as number[] }
  for (let round = -1; round < ROUNDS; round += 1) {
    for (const [name, pool] of [
      ['service', service],
      ['naive', naive],
    ] as const) {
      const taken: number[] = []
      for (let i = 0; i < PER_ROUND; i += 1) taken.push((await acknowledge(pool)).ms)
      // The first round only warms up.
      if (round >= 0) times[name].push(median(taken))
    }
  }
  await Promise.all([service.close(), naive.close()])
  const ratio = median(times.service) / median(times.naive)
  return {
    name: `acknowledgement p50, one request at a time, ${how} / one insert per request`,
    value: `${ratio.toFixed(2)} (${median(times.service).toFixed(2)} ms)`,
    baseline: `${median(times.naive).toFixed(2)} ms`,
    target: '≤ 1.3',
    met: ratio <= 1.3,
  }
}

/** From the acknowledgement to a readable, final payment; the gateway answers at once. */
export async function measureReadable(serviceUrl: string): Promise<Measure> {
  const pool = new Pool(serviceUrl)
  const taken: number[] = []
  for (let i = 0; i < 200; i += 1) {
    const { transactionId } = await acknowledge(pool)
    const started = performance.now()
    const answer = await pool.request({
      path: `/v1/transactions/${transactionId}?wait=10`,
      method: 'GET',
      headers: { authorization: `Bearer ${ACCOUNT.apiKey}` },
    })
    const text = await answer.body.text()
    if (!text.includes('"state":"paid"')) throw new Error(`not paid: ${text}`)
    taken.push(performance.now() - started)
  }
  await pool.close()
  const p50 = median(taken)
  return {
    name: 'acknowledgement → readable payment p50, gateway at 0 ms',
    value: `${p50.toFixed(1)} ms`,
    baseline: `p99 ${percentile(taken, 99).toFixed(1)} ms`,
    target: '≤ 40 ms',
    met: p50 <= 40,
  }
}
