import { readdirSync, readFileSync } from 'node:fs'
import { beforeAll, beforeEach, describe, expect, it, onTestFinished } from 'vitest'
import { createBaselineTables, createDueIndex } from '../../bench/baselines/tables.ts'
import { ACCOUNT, makeNotification } from '../../bench/notifications.ts'
import { makeEnv, startProcess } from '../../bench/processes.ts'
import { createTestDatabase } from '../../support/database.ts'
import { pickPort } from '../../support/ports.ts'
import { useStarted } from '../../support/use-started.ts'
import { waitUntil } from '../../support/wait-until.ts'

const AUTHORIZED = { authorization: `Bearer ${ACCOUNT.apiKey}` }

const database = useStarted(
  () => createTestDatabase({ empty: true }),
  (one) => one.drop(),
)
beforeAll(async () => {
  await createBaselineTables(database.sql)
  await createDueIndex(database.sql)
})
beforeEach(async () => {
  await database.sql`truncate notifications, transactions, payments, refunds`
})

async function start(file: string, more: Record<string, string> = {}): Promise<string> {
  const port = await pickPort()
  const env = { ...makeEnv(database.url, 'http://127.0.0.1:1'), PORT: port, ...more }
  const { stop } = await startProcess(`test/bench/${file}.ts`, env)
  onTestFinished(stop)
  return `http://127.0.0.1:${port}`
}

async function notify(url: string, body = makeNotification().body): Promise<number> {
  const answer = await fetch(`${url}/ipn`, { method: 'POST', body })
  await answer.arrayBuffer()
  return answer.status
}

const forge = () => makeNotification().body.replace('two shirts', 'ten shirts')
const count = async (table: string) =>
  (await database.sql`select count(*)::int as n from ${database.sql(table)}`)[0]?.n

describe('the baselines of the benchmarks', () => {
  it('contain no code of the service', () => {
    const folder = new URL('../../bench/baselines/', import.meta.url)
    const imports = readdirSync(folder).flatMap((file) =>
      [
        ...readFileSync(new URL(file, folder), 'utf8').matchAll(/(?:from|import)[ (]+'(\.[^']*)'/g),
      ].map(([, path]) => `${file}: ${path}`),
    )
    expect(imports.length).toBeGreaterThan(5)
    expect(imports.filter((line) => !/: \.\/[^/]+$/.test(line))).toEqual([])
  })

  it('bare checks the hash and stores nothing', async () => {
    const url = await start('baselines/bare')
    expect(await notify(url)).toBe(200)
    expect(await notify(url, forge())).toBe(401)
    expect(await count('notifications')).toBe(0)
  })

  it.each(['naive', 'batched'])('%s stores every notification, and makes it due', async (name) => {
    const url = await start(`baselines/${name}`)
    const twice = makeNotification().body
    const bodies = [twice, twice, ...Array.from({ length: 98 }, () => makeNotification().body)]
    const statuses = await Promise.all(bodies.map((body) => notify(url, body)))
    expect(new Set(statuses)).toEqual(new Set([200]))
    expect(await notify(url, forge())).toBe(401)
    expect(await count('notifications')).toBe(100)
    const due = await database.sql`select from transactions where due_at <= now()`
    expect(due).toHaveLength(99)
  })

  it('the naive sync asks about what is due and stores the answer, which naive reads', async () => {
    const url = await start('baselines/naive')
    const { transactionId, body } = makeNotification()
    await notify(url, body)
    await start('baselines/sync', { GATEWAY_BASE_URL: await start('gateway') })
    await waitUntil(async () => (await count('payments')) === 1, { what: 'a payment is stored' })
    const path = `${url}/v1/transactions/${transactionId}`
    expect((await fetch(path)).status).toBe(401)
    const answer = await fetch(path, { headers: AUTHORIZED })
    expect(await answer.json()).toMatchObject({
      state: 'paid',
      final: true,
      paid_amount: '20000000',
      payments: [{ payment_id: `P-${transactionId}`, status: 'SUCCESS', amount: '20000000' }],
    })
    const due = await database.sql`select from transactions where due_at is not null`
    expect(due).toHaveLength(0)
  })

  it('naive stores a refund', async () => {
    const url = await start('baselines/naive')
    const headers = {
      ...AUTHORIZED,
      'content-type': 'application/json',
      'idempotency-key': 'one',
    }
    const path = `${url}/v1/payments/P-1/refunds`
    const answer = await fetch(path, { method: 'POST', headers, body: '{"amount":"10000"}' })
    expect(answer.status).toBe(202)
    expect(await answer.json()).toMatchObject({ status: 'pending' })
    expect(await count('refunds')).toBe(1)
  })
})
