import { randomUUID } from 'node:crypto'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { type Sandbox, startSandbox } from '../../../src/sandbox/start-sandbox.ts'
import { withKey } from '../../support/api.ts'
import { createTestDatabase, type OwnDatabase } from '../../support/database.ts'
import { settingsFor, startServiceProcess } from '../../support/process.ts'
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

describe('a worker killed with SIGKILL while it holds 200 claims', { timeout: 120_000 }, () => {
  it('leaves its queries to another: all are taken over when the lease expires, not before, and applied once', async () => {
    await payAll()
    await control('POST', '/faults', { command: 'QUERY_PT', kind: 'acceptThenHang' })
    await database.sql`
      insert into transactions (merchant_code, transaction_id, due_at)
      select ${MERCHANT.merchantCode}, id, now() from unnest(${IDS}::text[]) as id`
    const first = await startWorker(3_000)
    await waitUntil(isAll('transactions where lease_id is not null'), { what: '200 claims' })
    first.child.kill('SIGKILL')
    await first.ended
    await database.sql`
      create table leases as select merchant_code, transaction_id, due_at as until from transactions
      where lease_id is not null`
    expect(await count('leases')).toBe(CLAIMS)
    expect(await count('gateway_calls')).toBe(0)

    await control('DELETE', '/faults')
    const second = await startWorker(3_000)
    // Three calls and 15 s: the lease of the settings above.
    await waitUntil(isAll('transactions where final'), {
      what: 'all are taken over within the lease',
      timeoutMs: 60_000,
    })
    const early =
      'gateway_calls join leases using (merchant_code, transaction_id) where sent_at < until'
    expect(await count(early)).toBe(0)
    expect(await count('gateway_calls')).toBe(CLAIMS)
    expect(await count("changes where field = 'state' and after = 'paid'")).toBe(CLAIMS)
    expect(await count("changes where field = 'status' and after = 'SUCCESS'")).toBe(CLAIMS)
    expect(await count('payments')).toBe(CLAIMS)
    expect(await count('transactions where due_at is not null or lease_id is not null')).toBe(0)
    second.child.kill('SIGTERM')
    expect(await second.ended).toBe(0)
  })

  it('with 200 refunds in flight that the gateway accepted: another sends them once more, and none moves money twice', async () => {
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
      const calls = sandbox.state.journal.entries.filter(({ command }) => command === 'REFUND')
      return calls.flatMap((call) => ('workCode' in call && call.workCode === 0 ? [call] : []))
    }
    const allTaken = () => listTaken().length === CLAIMS
    await waitUntil(allTaken, { what: 'the gateway accepted all', timeoutMs: 30_000 })
    expect(await count("refunds where status = 'sending'")).toBe(CLAIMS)
    first.child.kill('SIGKILL')
    await first.ended

    await control('DELETE', '/faults')
    await database.sql`update transactions set due_at = now() where lease_id is not null`
    const second = await startWorker(60_000)
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
