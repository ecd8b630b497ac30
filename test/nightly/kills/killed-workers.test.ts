import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type Sandbox, startSandbox } from '../../../src/sandbox/start.ts'
import { createTestDatabase, type OwnDatabase } from '../../support/database.ts'
import { type ServiceProcess, settingsFor, startServiceProcess } from '../../support/process.ts'
import { makeControl } from '../../support/sandbox.ts'
import { KEY, MERCHANT, postIpn, signIpn } from '../../support/service.ts'
import { waitUntil } from '../../support/wait-until.ts'

let database: OwnDatabase
let sandbox: Sandbox
beforeAll(async () => {
  database = await createTestDatabase()
  sandbox = await startSandbox({ accounts: [MERCHANT] })
})
afterAll(async () => {
  await sandbox.stop()
  await database.drop()
})

const control = makeControl(() => sandbox)

const start = (more: Record<string, string> = {}) =>
  startServiceProcess({ ...settingsFor(database.url, sandbox.url), ...more })

/** Creates transactions at the gateway, each with a payment of a different amount. */
async function makeMany(prefix: string, count: number): Promise<string[]> {
  const ids = Array.from({ length: count }, (_, n) => `${prefix}-${n}`)
  for (let at = 0; at < count; at += 100) {
    await Promise.all(
      ids.slice(at, at + 100).map((transactionId, n) =>
        control('POST', '/transactions', {
          transactionId,
          payments: [{ amount: `${at + n + 1}`, paymentMethod: 'CC', status: 'SUCCESS' }],
          ipn: false,
        }),
      ),
    )
  }
  return ids
}

/** Sends all notifications, 50 at a time; returns the ids of those acknowledged. */
async function notifyOfAll(
  service: ServiceProcess,
  ids: readonly string[],
  onAcknowledged: (count: number) => void,
): Promise<string[]> {
  const acknowledged: string[] = []
  const waiting = [...ids]
  const send = async () => {
    for (let id = waiting.shift(); id !== undefined; id = waiting.shift()) {
      const answer = await postIpn(service.url, signIpn({ svc_TransactionID: id })).catch(() => {})
      if (answer?.status !== 200) continue
      acknowledged.push(id)
      onAcknowledged(acknowledged.length)
    }
  }
  await Promise.all(Array.from({ length: 50 }, send))
  return acknowledged
}

async function expectAllApplied(acknowledged: readonly string[]): Promise<void> {
  const open = async () => {
    const [row] = await database.sql`select count(*) as n from transactions where not final`
    return row?.n
  }
  await waitUntil(async () => (await open()) === 0, {
    what: 'all transactions to be final',
    timeoutMs: 20_000,
  })
  const rows = await database.sql`
    select t.transaction_id as id, t.state, t.paid_amount as paid, count(p.payment_id) as payments
    from transactions as t left join payments as p using (merchant_code, transaction_id)
    group by t.merchant_code, t.transaction_id`
  const byId = new Map(rows.map((row) => [row.id, row]))
  for (const id of acknowledged) {
    const paid = String(Number(id.split('-')[1]) + 1)
    expect(byId.get(id)).toEqual({ id, state: 'paid', paid, payments: 1 })
  }
}

describe('the process', { timeout: 60_000 }, () => {
  it('killed with SIGKILL in the middle of 1,000 notifications: every acknowledged one is applied after the restart', async () => {
    const ids = await makeMany('KILL', 1000)
    const first = await start()
    const acknowledged = await notifyOfAll(first, ids, (count) => {
      if (count === 400) first.child.kill('SIGKILL')
    })
    expect(await first.ended).toBeNull()
    expect(acknowledged.length).toBeGreaterThanOrEqual(400)
    expect(acknowledged.length).toBeLessThan(1000)

    // What the killed process had claimed is due only when its lease expires, after 15 s at least.
    await database.sql`update transactions set due_at = now() where lease_id is not null`
    const second = await start()
    await expectAllApplied(acknowledged)
    second.child.kill('SIGTERM')
    expect(await second.ended).toBe(0)
  })

  it('stopped twice, with calls in flight and notifications arriving: exits 0 within 10 s, loses nothing acknowledged, keeps no claim', async () => {
    const ids = await makeMany('TERM', 300)
    await control('POST', '/faults', { command: 'QUERY_PT', kind: 'acceptThenHang', times: 5 })
    const first = await start({ GATEWAY_TIMEOUT_MS: '60000' })
    let toldAt = 0
    const acknowledged = await notifyOfAll(first, ids, (count) => {
      if (count !== 150) return
      toldAt = performance.now()
      first.child.kill('SIGTERM')
      // As Ctrl-C does under npm: the second signal aborts nothing.
      setTimeout(() => first.child.kill('SIGTERM'), 500)
    })
    expect(await first.ended).toBe(0)
    expect(performance.now() - toldAt).toBeLessThan(10_000)
    const [left] = await database.sql`
      select count(*) as leased from transactions where lease_id is not null`
    expect(left).toEqual({ leased: 0 })

    const second = await start()
    await expectAllApplied(acknowledged)
    second.child.kill('SIGINT')
    expect(await second.ended).toBe(0)
  })

  it('stops at once with a reader waiting and a connection kept alive, and answers the reader', async () => {
    await database.sql`
      insert into transactions (merchant_code, transaction_id) values ('UFLIYL', 'T-READER')`
    const service = await start()
    const authorization = { authorization: `Bearer ${KEY}` }
    const arrived = waitUntil(
      async () => {
        const metrics = await (await fetch(`${service.url}/metrics`)).text()
        return metrics.includes('ipn_received_total')
      },
      { what: 'the service is ready' },
    )
    await arrived
    const reading = fetch(`${service.url}/v1/transactions/T-READER?wait=50`, {
      headers: authorization,
    })
    const reads = async () => {
      const rows = await database.sql`
        select from pg_stat_activity where datname = current_database() and query ilike '%left join "payments"%'`
      return rows.length > 0
    }
    await waitUntil(reads, { what: 'the reader waits' })
    const toldAt = performance.now()
    service.child.kill('SIGTERM')
    expect(await (await reading).json()).toMatchObject({ state: 'pending' })
    expect(await service.ended).toBe(0)
    expect(performance.now() - toldAt).toBeLessThan(3_000)
  })
})
