import { randomUUID } from 'node:crypto'
import { expect, it } from 'vitest'
import { OTHER, withKey, writeMerchantsFile } from '../../support/api.ts'
import { addKey, MERCHANT, startRig } from '../../support/service.ts'
import { useStarted } from '../../support/use-started.ts'
import { waitUntil } from '../../support/wait-until.ts'

/** What one key asks for, and how many of its requests run at once. */
const RANDOM_SYNCS = 4_000
const AT_ONCE = 20
/** The payments of each account at idle and under attack. */
const PAYMENTS = 6
/** How long the gateway takes for a query (ms): without it there is no queue. */
const QUERY_MS = 400
/** A shorter time at idle says more about the machine than about the service (ms). */
const LEAST_IDLE_MS = 200

const file = writeMerchantsFile([MERCHANT, OTHER])
const rig = useStarted(
  () =>
    startRig({
      settings: {
        MERCHANTS_FILE: file.path,
        GATEWAY_TIMEOUT_MS: '5000',
        GATEWAY_MAX_CONCURRENCY: '8',
      },
      sandbox: { accounts: [MERCHANT, OTHER] },
    }),
  async (started) => {
    await started.stop()
    file.remove()
  },
)

/** Pays once, and waits until the payment can be read. @returns how long that took (ms) */
async function settle(merchantCode: string): Promise<number> {
  const transactionId = `P-${randomUUID().slice(0, 8)}`
  const started = performance.now()
  await rig.control('POST', '/transactions', {
    ...{ merchantCode, transactionId },
    payments: [{ amount: '1000', paymentMethod: 'ATM', status: 'SUCCESS' }],
  })
  await waitUntil(
    async () => {
      const path = `/v1/transactions/${transactionId}?merchantCode=${merchantCode}`
      const response = await rig.api(path)
      return response.ok && ((await response.json()) as { state: string }).state === 'paid'
    },
    { what: `${transactionId} of ${merchantCode} is paid`, timeoutMs: 60_000 },
  )
  return performance.now() - started
}

async function settleAll(): Promise<Record<'same' | 'other', number>> {
  const same: number[] = []
  const other: number[] = []
  for (let n = 0; n < PAYMENTS; n += 1) {
    const [mine, theirs] = await Promise.all([
      settle(MERCHANT.merchantCode),
      settle(OTHER.merchantCode),
    ])
    same.push(mine)
    other.push(theirs)
  }
  return { same: Math.max(...same), other: Math.max(...other) }
}

async function attack(key: string, answers: Map<number, number>, ended: AbortSignal) {
  let left = RANDOM_SYNCS
  const post = async () => {
    while (left > 0 && !ended.aborted) {
      left -= 1
      const { status, body } = await fetch(
        `${rig.service.url}/v1/transactions/R-${randomUUID()}/sync`,
        { method: 'POST', ...withKey(key) },
      )
      await body?.cancel()
      answers.set(status, (answers.get(status) ?? 0) + 1)
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, post))
}

it('4,000 syncs of random ids do not keep payments waiting, neither of their own account nor of another', async () => {
  const key = randomUUID()
  await addKey(rig.database, key, ['payments:read'], MERCHANT.merchantCode)
  await rig.control('POST', '/faults', {
    ...{ command: 'QUERY_PT', kind: 'delay', delayMs: QUERY_MS, times: 1_000_000 },
  })
  await settleAll()
  const idle = await settleAll()
  const answers = new Map<number, number>()
  const ended = new AbortController()
  const flood = attack(key, answers, ended.signal)
  await waitUntil(() => (answers.get(202) ?? 0) >= 200, { what: 'the flood' })
  const attacked = await settleAll()
  await flood
  const after = await settleAll()
  const unknown = [...answers.keys()].filter((status) => status !== 202 && status !== 429)
  expect(unknown).toEqual([])
  for (const whose of ['same', 'other'] as const) {
    const most = Math.max(attacked[whose], after[whose])
    const ratio = most / idle[whose]
    console.info(
      `random syncs (${JSON.stringify([...answers])}): the slowest of ${PAYMENTS} payments of the ${whose} account: idle ${idle[whose].toFixed(0)} ms, under attack ${attacked[whose].toFixed(0)} ms, with the queue left behind ${after[whose].toFixed(0)} ms, ratio ${ratio.toFixed(2)}`,
    )
    expect([whose, most / Math.max(idle[whose], LEAST_IDLE_MS)]).toEqual([
      whose,
      expect.toSatisfy((value: number) => value <= 3),
    ])
  }
}, 180_000)
