import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { type Sandbox, startSandbox } from '../../../src/sandbox/start.ts'
import { ask } from '../../support/ask.ts'
import { createTestDatabase, type OwnDatabase } from '../../support/database.ts'
import { settingsFor, startServiceProcess } from '../../support/process.ts'
import { makeControl } from '../../support/sandbox.ts'
import { MERCHANT, postIpn, signIpn, startTestService } from '../../support/service.ts'
import { waitUntil } from '../../support/wait-until.ts'

const CLAIMS = 200
const IDS = Array.from({ length: CLAIMS }, (_, n) => `CLAIM-${n}`)

let database: OwnDatabase
let sandbox: Sandbox
beforeEach(async () => {
  database = await createTestDatabase()
  sandbox = await startSandbox({ accounts: [MERCHANT], refundMs: 20 })
})
afterEach(async () => {
  await sandbox.stop()
  await database.drop()
})

const control = makeControl(() => sandbox)

const start = (more: Record<string, string> = {}) =>
  startServiceProcess({ ...settingsFor(database.url, sandbox.url), ...more })

const startWorker = (timeoutMs: number) =>
  start({
    ROLE: 'worker',
    GATEWAY_MAX_CONCURRENCY: String(CLAIMS),
    GATEWAY_TIMEOUT_MS: String(timeoutMs),
    SYNC_BACKOFF_MS: '50',
    SYNC_BACKOFF_MAX_MS: '200',
    REFUND_BACKOFF_MS: '50',
    REFUND_BACKOFF_MAX_MS: '500',
    REFUND_RESEND_AFTER_MS: '100',
  })

/** Pays 100 for each at the gateway, without a notification. */
async function payAll(ids: readonly string[]): Promise<void> {
  for (const transactionId of ids) {
    const id = `P-${transactionId}`
    const payment = { id, amount: '100', paymentMethod: 'CC', status: 'SUCCESS' }
    await control('POST', '/transactions', { transactionId, payments: [payment], ipn: false })
  }
}

async function count(rows: string): Promise<number> {
  const [row] = await database.sql.unsafe<{ n: number }[]>(`select count(*) as n from ${rows}`)
  return row?.n ?? -1
}

const untilAll = (rows: string, what: string) =>
  waitUntil(async () => (await count(rows)) === CLAIMS, { what, timeoutMs: 60_000 })

async function expectAppliedOnce(): Promise<void> {
  expect(await count('gateway_calls')).toBe(CLAIMS)
  expect(await count("changes where field = 'state' and after = 'paid'")).toBe(CLAIMS)
  expect(await count("changes where field = 'status' and after = 'SUCCESS'")).toBe(CLAIMS)
  expect(await count('payments')).toBe(CLAIMS)
  expect(await count('transactions where due_at is not null or lease_id is not null')).toBe(0)
}

describe('a worker that holds 200 claims', { timeout: 180_000 }, () => {
  it.each(['SIGKILL', 'SIGSTOP'] as const)(
    'and gets %s: another takes all over once it is unseen, not before, and each is applied once',
    async (signal) => {
      await payAll(IDS)
      await control('POST', '/faults', { command: 'QUERY_PT', kind: 'acceptThenHang' })
      const first = await startWorker(20_000)
      await database.sql`
        insert into transactions (merchant_code, transaction_id, due_at)
        select ${MERCHANT.merchantCode}, id, now() from unnest(${IDS}::text[]) as id`
      await untilAll('transactions where lease_id is not null', '200 claims')
      expect(await count('gateway_calls')).toBe(0)
      const second = await startWorker(20_000)
      first.child.kill(signal)
      await control('DELETE', '/faults')
      // The leases of the first last 75 s.
      await untilAll('transactions where final', 'all are taken over')
      const early = `gateway_calls where sent_at < (select min(seen_at) from processes) + interval '12 s'`
      expect(await count(early)).toBe(0)
      if (signal === 'SIGSTOP') {
        first.child.kill('SIGCONT')
        first.child.kill('SIGTERM')
        expect(await first.ended).toBe(0)
      }
      await expectAppliedOnce()
      second.child.kill('SIGTERM')
      expect(await second.ended).toBe(0)
    },
  )
})

describe('a worker with 200 refunds in flight that the gateway accepted', {
  timeout: 300_000,
}, () => {
  it('and is only paused keeps its leases; killed, another sends them once more, and none moves money twice', async () => {
    await payAll(IDS)
    const web = await startTestService(database, sandbox.url, { settings: { ROLE: 'web' } })
    sandbox.setIpnUrl(`${web.url}/ipn`)
    const first = await startWorker(60_000)
    for (const id of IDS) await postIpn(web.url, signIpn({ svc_TransactionID: id }))
    await untilAll('transactions where final', 'all paid')
    await control('PUT', '/refund-mode', { settleMs: null })
    await control('POST', '/faults', { command: 'REFUND', kind: 'acceptThenHang' })
    for (const id of IDS) expect((await ask(web, `P-${id}`, { amount: '40' })).status).toBe(202)
    const listTaken = () => {
      const calls = sandbox.state.journal.filter(({ command }) => command === 'REFUND')
      return calls.flatMap((call) => ('workCode' in call && call.workCode === 0 ? [call] : []))
    }
    const allTaken = () => listTaken().length === CLAIMS
    await waitUntil(allTaken, { what: 'the gateway accepted all', timeoutMs: 30_000 })
    expect(await count("refunds where status = 'sending'")).toBe(CLAIMS)
    const second = await startWorker(60_000)
    first.child.kill('SIGSTOP')
    await control('DELETE', '/faults')
    const isUnseen = async () =>
      (await count("processes where seen_at < now() - interval '16 s'")) === 1
    await waitUntil(isUnseen, { what: 'the first is unseen for long', timeoutMs: 60_000 })
    expect(await count("refunds where status = 'sending'")).toBe(CLAIMS)
    expect(await count('transactions where lease_id is not null and due_at > now()')).toBe(CLAIMS)
    expect(listTaken()).toHaveLength(CLAIMS)
    first.child.kill('SIGKILL')
    await first.ended
    // Only the end of the leases says that nothing is sent any more.
    await database.sql`update transactions set due_at = now() where lease_id is not null`
    await untilAll('refunds where attempts > 1', 'all are sent once more')
    for (const call of listTaken()) {
      if (!('requestId' in call)) continue
      await control('POST', `/refunds/${call.requestId}/settle`, { outcome: 'success' })
    }
    await untilAll("refunds where status = 'succeeded' and matched", 'all ended')
    await untilAll('transactions where final and due_at is null', 'no query is left')
    const moved = sandbox.state.ledger.map(({ requestId }) => requestId)
    expect([moved.length, new Set(moved).size]).toEqual([CLAIMS, CLAIMS])
    expect(await count("changes where refund_id is not null and after = 'succeeded'")).toBe(CLAIMS)
    expect(await count('payments where refunded_amount = 40')).toBe(CLAIMS)
    second.child.kill('SIGTERM')
    expect(await second.ended).toBe(0)
    await web.stop()
  })
})

it('a process killed in the middle of 1,000 notifications: every acknowledged one is applied after the restart', async () => {
  const waiting = Array.from({ length: 1_000 }, (_, n) => `KILL-${n}`)
  await payAll(waiting)
  const first = await start()
  const acknowledged: string[] = []
  const send = async () => {
    for (let id = waiting.shift(); id !== undefined; id = waiting.shift()) {
      const answer = await postIpn(first.url, signIpn({ svc_TransactionID: id })).catch(() => {})
      if (answer?.status !== 200) continue
      acknowledged.push(id)
      if (acknowledged.length === 400) first.child.kill('SIGKILL')
    }
  }
  await Promise.all(Array.from({ length: 50 }, send))
  expect(await first.ended).toBeNull()
  expect(acknowledged.length).toBeGreaterThanOrEqual(400)
  expect(acknowledged.length).toBeLessThan(1000)

  // What the killed process had claimed is due only when its lease expires, after 15 s at least.
  await database.sql`update transactions set due_at = now() where lease_id is not null`
  const second = await start()
  const isOver = async () => (await count('transactions where not final')) === 0
  await waitUntil(isOver, { what: 'all transactions to be final' })
  const rows = await database.sql<{ id: string; paid: string; payments: string[] }[]>`
    select transaction_id as id, t.paid_amount as paid, array_agg(p.payment_id) as payments
    from transactions as t left join payments as p using (merchant_code, transaction_id) group by 1, 2`
  const stored = new Map(rows.map((row) => [row.id, row]))
  for (const id of acknowledged) {
    expect(stored.get(id)).toEqual({ id, paid: '100', payments: [`P-${id}`] })
  }
  second.child.kill('SIGTERM')
  expect(await second.ended).toBe(0)
}, 60_000)
