import { randomInt } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:net'
import { beforeEach, describe, expect, it } from 'vitest'
import { startTestService } from '../../support/service.ts'
import { startProxyTo } from '../../support/tcp-proxy.ts'
import { clearRig, useRig } from '../../support/use-started.ts'
import { waitUntil } from '../../support/wait-until.ts'

const MANY = 60

const rig = useRig({
  settings: { GATEWAY_TIMEOUT_MS: '150', SYNC_BACKOFF_MAX_MS: '200', SYNC_MAX_ATTEMPTS: '1000' },
})
beforeEach(() => clearRig(rig))

type Kind = { id: string; status: string; state: string; paidAmount: string }

/** Describes transactions: every third fails, the others are paid; ids and amounts differ. */
function describeKinds(prefix: string): Kind[] {
  return Array.from({ length: MANY }, (_, n) => {
    const failed = n % 3 === 1
    return {
      id: `${prefix}-${n}`,
      status: failed ? 'FAILED' : 'SUCCESS',
      state: failed ? 'failed' : 'paid',
      paidAmount: failed ? '0' : `${n + 1}.25`,
    }
  })
}

/** Creates many transactions at the gateway, each with its notification. */
async function play(kinds: readonly Kind[]): Promise<void> {
  await Promise.all(
    kinds.map(({ id, status }, n) =>
      rig.control('POST', '/transactions', {
        transactionId: id,
        payments: [{ id: `p-${id}`, amount: `${n + 1}.25`, paymentMethod: 'CC', status }],
      }),
    ),
  )
}

const count = async (condition: string) => {
  const [row] = await rig.database.sql.unsafe<{ n: number }[]>(
    `select count(*)::float8 as n from transactions where ${condition}`,
  )
  return row?.n
}

async function expectAllRight(kinds: readonly Kind[]): Promise<void> {
  await waitUntil(async () => (await count('final and due_at is null')) === MANY, {
    what: 'every transaction to be idle',
    timeoutMs: 20_000,
  })
  const rows = await rig.database.sql`
    select transaction_id as id, state, paid_amount as "paidAmount", attempts, last_error, ipn_count,
      (select count(*) from payments as p where p.transaction_id = t.transaction_id) as payments
    from transactions as t`
  const byId = new Map(rows.map((row) => [row.id, row]))
  for (const { id, state, paidAmount } of kinds) {
    expect(byId.get(id)).toMatchObject({ state, paidAmount, payments: 1 })
    expect(byId.get(id)).toMatchObject({ attempts: 0, last_error: null, ipn_count: 1 })
  }
}

/** A port without a listener, below the range the system assigns to others. */
async function findIdlePort(): Promise<number> {
  const port = randomInt(20_000, 32_000)
  const server = createServer().listen(port, '127.0.0.1')
  try {
    await once(server, 'listening')
  } catch {
    return await findIdlePort()
  }
  server.close()
  await once(server, 'close')
  return port
}

describe('the gateway misbehaves for a while, with many transactions at once', () => {
  it.each([
    ['answers HTTP 500', { kind: 'http500' }],
    ['answers what is no JSON', { kind: 'garbage' }],
    ['answers half', { kind: 'truncate' }],
    ['resets the connection', { kind: 'reset' }],
    ['does the work and resets', { kind: 'acceptThenReset' }],
    ['answers later than the time-out', { kind: 'delay', delayMs: 400 }],
    ['hangs', { kind: 'acceptThenHang' }],
    ['refuses with a code', { kind: 'code', code: 1 }],
    ['is waiting for the payer', { kind: 'code', code: 9 }],
  ])('%s: nothing wrong is stored, nothing is lost, it recovers by itself', async (_, fault) => {
    const kinds = describeKinds(JSON.stringify(fault))
    await rig.control('POST', '/faults', { command: 'QUERY_PT', ...fault })
    await play(kinds)
    await waitUntil(async () => (await count('attempts + polls >= 1')) === MANY, {
      what: 'every transaction met the fault',
      timeoutMs: 20_000,
    })
    expect(await count(`state <> 'pending' or final or as_of is not null`)).toBe(0)
    expect(await rig.database.sql`select from payments`).toHaveLength(0)
    await rig.control('DELETE', '/faults')
    await expectAllRight(kinds)
  })

  it('with changing faults: every transaction still ends correctly', async () => {
    const kinds = describeKinds('MIX')
    for (const kind of ['http500', 'garbage', 'truncate', 'reset', 'acceptThenCode']) {
      const fault = { command: 'QUERY_PT', kind, probability: 0.2, times: 40 }
      await rig.control('POST', '/faults', fault)
    }
    await play(kinds)
    await expectAllRight(kinds)
  })
})

it('the gateway is down (connection refused) and comes back: nothing is lost', async () => {
  const port = await findIdlePort()

  const gateway = `http://127.0.0.1:${port}`
  const settings = { SYNC_BACKOFF_MAX_MS: '200', SYNC_MAX_ATTEMPTS: '1000' }
  const kinds = describeKinds(`DOWN-${port}`)
  // This service queries the closed port; the rig's own service must not claim anything.
  await rig.service.stop()
  const service = await startTestService(rig.database, gateway, { settings })
  try {
    rig.sandbox.setIpnUrl(`${service.url}/ipn`)
    await play(kinds)
    const refused = `attempts >= 2 and last_error = 'ECONNREFUSED'`
    await waitUntil(async () => (await count(refused)) === MANY, {
      what: 'all were refused twice',
      timeoutMs: 20_000,
    })
    expect(await rig.database.sql`select from payments`).toHaveLength(0)

    // The gateway is back at that address, as a proxy to the sandbox.
    const relay = await startProxyTo(rig.sandbox.url, port)
    try {
      await expectAllRight(kinds)
    } finally {
      await relay.stop()
    }
  } finally {
    await service.stop()
  }
})
