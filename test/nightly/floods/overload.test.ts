import { Pool } from 'undici'
import { expect, it, onTestFinished } from 'vitest'
import { createTestDatabase } from '../../support/database.ts'
import { settingsFor, startServiceProcess } from '../../support/process.ts'
import { signIpn } from '../../support/service.ts'

/** Limits the database of this test to 500 notifications a second, on any machine. */
const ROW_MS = 2
const OFFERED_PER_S = 1_500
const OFFERED = 20_000
/** Heap limit of the service: a process that retains more crashes. */
const HEAP_MB = 112

type Answer = { transactionId: string; status: number; ms: number; body: string; retry: unknown }

/** Sends notifications at a steady rate, without waiting for answers. */
async function offer(pool: Pool, from: string, count: number): Promise<Answer[]> {
  const answers: Promise<Answer>[] = []
  const started = performance.now()
  while (answers.length < count) {
    const due = Math.min(count, ((performance.now() - started) / 1_000) * OFFERED_PER_S)
    while (answers.length < due) answers.push(send(pool, `${from}-${answers.length}`))
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
  return await Promise.all(answers)
}

async function send(pool: Pool, transactionId: string): Promise<Answer> {
  const body = JSON.stringify(signIpn({ svc_TransactionID: transactionId }))
  const started = performance.now()
  const headers = { 'content-type': 'application/json' }
  const answer = await pool.request({ path: '/ipn', method: 'POST', headers, body })
  const text = await answer.body.text()
  const retry = answer.headers['retry-after']
  const ms = performance.now() - started
  return { transactionId, status: answer.statusCode, ms, body: text, retry }
}

async function readMemory(url: string): Promise<number> {
  const text = await (await fetch(`${url}/metrics`)).text()
  return Number(/^process_resident_memory_bytes (\S+)/m.exec(text)?.[1])
}

const percentile = (values: readonly number[], part: number) =>
  Math.round(values.toSorted((a, b) => a - b)[Math.floor(values.length * part)] ?? 0)

it('at three times the rate the database can take, what is acknowledged is stored, the rest is refused, and memory does not grow', async () => {
  const database = await createTestDatabase()
  onTestFinished(() => database.drop())
  await database.sql.unsafe(`
    create function take_time() returns trigger language plpgsql as $$
    begin perform pg_sleep(${ROW_MS / 1_000}); return new; end $$;
    create trigger take_time before insert on ipn_events for each row execute function take_time()`)
  const service = await startServiceProcess({
    ...settingsFor(database.url, 'http://127.0.0.1:9'),
    ROLE: 'web',
    LOG_LEVEL: 'info',
    // The senders here have more connections than one network may have.
    TRUSTED_PROXIES: '127.0.0.1',
    NODE_OPTIONS: `--max-old-space-size=${HEAP_MB}`,
  })
  const pool = new Pool(service.url, { connections: 4_000, pipelining: 1, headersTimeout: 0 })
  onTestFinished(() => pool.destroy())

  const warm = await offer(pool, 'WARM', 4_500)
  const before = await readMemory(service.url)
  const memory: number[] = []
  let over = false
  const watch = (async () => {
    while (!over) {
      memory.push(await readMemory(service.url))
      await new Promise((resolve) => setTimeout(resolve, 250))
    }
  })()
  const answers = await offer(pool, 'STORM', OFFERED)
  over = true
  await watch

  const ended = performance.now()
  let calm = 0
  while (calm < 10) {
    const { status } = await send(pool, `AFTER-${performance.now()}`)
    calm = status === 200 ? calm + 1 : 0
  }
  const recoveredMs = performance.now() - ended

  const acknowledged = answers.filter(({ status }) => status === 200)
  const refused = answers.filter(({ status }) => status === 503)
  const taken = [...warm, ...answers].filter(({ status }) => status === 200)
  const rows = await database.sql<{ id: string }[]>`
    select transaction_id as id from ipn_events where transaction_id not like 'AFTER%'`
  const stored = new Set(rows.map(({ id }) => id))
  console.info(
    `acknowledged ${acknowledged.length}, refused ${refused.length} (p50 ${percentile(
      refused.map(({ ms }) => ms),
      0.5,
    )} ms, p99 ${percentile(
      refused.map(({ ms }) => ms),
      0.99,
    )} ms, max ${Math.round(Math.max(...refused.map(({ ms }) => ms)))} ms), ` +
      `memory ${Math.round(before / 1e6)} MB before, ${Math.round(Math.min(...memory) / 1e6)} to ` +
      `${Math.round(Math.max(...memory) / 1e6)} MB (p50 ${Math.round(percentile(memory, 0.5) / 1e6)}), recovered in ${Math.round(recoveredMs)} ms`,
  )
  expect(acknowledged.length + refused.length).toBe(OFFERED)
  expect(taken.filter(({ transactionId }) => !stored.has(transactionId))).toEqual([])
  expect(stored.size).toBe(taken.length)
  expect(acknowledged.length).toBeGreaterThan(1_000)
  expect(refused.length).toBeGreaterThan(OFFERED / 3)
  const [first] = refused
  expect(JSON.parse(first?.body ?? '')).toMatchObject({ respcode: 1 })
  expect(first?.retry).toBe('1')
  // The heap stayed within its limit, and memory outside the heap did not grow.
  expect(service.child.exitCode).toBeNull()
  expect(Math.max(...memory)).toBeLessThan(before * 1.2)
  expect(Math.min(...memory)).toBeGreaterThan(before * 0.8)
  expect(recoveredMs).toBeLessThan(10_000)
  // One line when it begins, not one for each refusal.
  expect(service.output().out.split('"msg":"the database does not keep up:')).toHaveLength(2)
  expect(service.output().out).not.toContain('could not be stored')
}, 90_000)
