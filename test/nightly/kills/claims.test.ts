import { randomUUID } from 'node:crypto'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { type Sandbox, startSandbox } from '../../../src/sandbox/start.ts'
import { withKey } from '../../support/api.ts'
import { createTestDatabase, type OwnDatabase } from '../../support/database.ts'
import { type ServiceProcess, settingsFor, startServiceProcess } from '../../support/process.ts'
import { makeControl } from '../../support/sandbox.ts'
import { KEY, MERCHANT, postIpn, signIpn, startTestService } from '../../support/service.ts'
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

const startWorker = (timeoutMs: number) =>
  startServiceProcess({
    ...settingsFor(database.url, sandbox.url),
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
async function payAll(): Promise<void> {
  for (const transactionId of IDS) {
    const payment = {
      id: `P-${transactionId}`,
      amount: '100',
      paymentMethod: 'CC',
      status: 'SUCCESS',
    }
    await control('POST', '/transactions', { transactionId, payments: [payment], ipn: false })
  }
}

async function count(rows: string): Promise<number> {
  const [row] = await database.sql.unsafe<{ n: number }[]>(`select count(*) as n from ${rows}`)
  return row?.n ?? -1
}

const isAll = (rows: string) => async () => (await count(rows)) === CLAIMS

/** Starts a worker that claims all, and whose queries hang, and another beside it. */
async function startTwo(): Promise<{ first: ServiceProcess; second: ServiceProcess }> {
  await payAll()
  await control('POST', '/faults', { command: 'QUERY_PT', kind: 'acceptThenHang' })
  const first = await startWorker(20_000)
  await database.sql`
    insert into transactions (merchant_code, transaction_id, due_at)
    select ${MERCHANT.merchantCode}, id, now() from unnest(${IDS}::text[]) as id`
  await waitUntil(isAll('transactions where lease_id is not null'), { what: '200 claims' })
  expect(await count('gateway_calls')).toBe(0)
  return { first, second: await startWorker(20_000) }
}

/** Waits until the second worker has done all work of the first; the leases of that one last 75 s. */
async function expectTakenOver(): Promise<void> {
  const isOver = isAll('transactions where final')
  await waitUntil(isOver, { what: 'all are taken over', timeoutMs: 45_000 })
  const early = `gateway_calls where sent_at < (select min(seen_at) from processes) + interval '12 s'`
  expect(await count(early)).toBe(0)
}

async function expectAppliedOnce(): Promise<void> {
  expect(await count('gateway_calls')).toBe(CLAIMS)
  expect(await count("changes where field = 'state' and after = 'paid'")).toBe(CLAIMS)
  expect(await count("changes where field = 'status' and after = 'SUCCESS'")).toBe(CLAIMS)
  expect(await count('payments')).toBe(CLAIMS)
  expect(await count('transactions where due_at is not null or lease_id is not null')).toBe(0)
}

describe('a worker that holds 200 claims', { timeout: 180_000 }, () => {
  it('and is killed with SIGKILL: another takes all over once it is unseen, not before, and applies each once', async () => {
    const { first, second } = await startTwo()
    first.child.kill('SIGKILL')
    const killedAt = performance.now()
    await first.ended
    await control('DELETE', '/faults')
    await expectTakenOver()
    process.stdout.write(`readable ${Math.round(performance.now() - killedAt)} ms after the kill\n`)
    await expectAppliedOnce()
    second.child.kill('SIGTERM')
    expect(await second.ended).toBe(0)
  })

  it('and is stopped with SIGSTOP: another takes all over, and nothing is written by the first when it goes on', async () => {
    const { first, second } = await startTwo()
    first.child.kill('SIGSTOP')
    await control('DELETE', '/faults')
    await expectTakenOver()
    first.child.kill('SIGCONT')
    first.child.kill('SIGTERM')
    expect(await first.ended).toBe(0)
    await expectAppliedOnce()
    second.child.kill('SIGTERM')
    expect(await second.ended).toBe(0)
  })
})

describe('a worker with 200 refunds in flight that the gateway accepted', {
  timeout: 300_000,
}, () => {
  it('and is only paused keeps its leases; killed, another sends them once more, and none moves money twice', async () => {
    await payAll()
    const web = await startTestService(database, sandbox.url, { settings: { ROLE: 'web' } })
    sandbox.setIpnUrl(`${web.url}/ipn`)
    const first = await startWorker(60_000)
    for (const id of IDS) await postIpn(web.url, signIpn({ svc_TransactionID: id }))
    await waitUntil(isAll('transactions where final'), { what: 'all paid', timeoutMs: 30_000 })
    await control('PUT', '/refund-mode', { settleMs: null })
    await control('POST', '/faults', { command: 'REFUND', kind: 'acceptThenHang' })
    for (const id of IDS) {
      const asked = await fetch(`${web.url}/v1/payments/P-${id}/refunds`, {
        method: 'POST',
        ...withKey(KEY, { 'content-type': 'application/json', 'idempotency-key': randomUUID() }),
        body: JSON.stringify({ amount: '40' }),
      })
      expect(asked.status).toBe(202)
    }
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
    await waitUntil(isAll('refunds where attempts > 1'), {
      what: 'all are sent once more',
      timeoutMs: 60_000,
    })
    for (const call of listTaken()) {
      if ('requestId' in call) {
        await control('POST', `/refunds/${call.requestId}/settle`, { outcome: 'success' })
      }
    }
    await waitUntil(isAll("refunds where status = 'succeeded' and matched"), {
      what: 'all ended',
      timeoutMs: 60_000,
    })
    await waitUntil(isAll('transactions where final and due_at is null'), {
      what: 'no query is left',
      timeoutMs: 30_000,
    })
    const moved = sandbox.state.ledger.map(({ requestId }) => requestId)
    expect(moved.length).toBe(CLAIMS)
    expect(new Set(moved).size).toBe(CLAIMS)
    expect(await count("changes where refund_id is not null and after = 'succeeded'")).toBe(CLAIMS)
    expect(await count('payments where refunded_amount = 40')).toBe(CLAIMS)
    second.child.kill('SIGTERM')
    expect(await second.ended).toBe(0)
    await web.stop()
  })
})
