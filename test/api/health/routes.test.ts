import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { expectProblem, seedTransaction, withKey } from '../../support/api.ts'
import { createTestDatabase } from '../../support/database.ts'
import {
  postIpn,
  type Rig,
  type RigOptions,
  signIpn,
  startRig,
  startTestService,
} from '../../support/service.ts'
import { waitUntil } from '../../support/wait-until.ts'

async function start(options?: RigOptions): Promise<Rig> {
  const rig = await startRig(options)
  onTestFinished(() => rig.stop())
  return rig
}

/** Reads the whole answer: undici throws where a connection that is not kept ends before that. */
async function status(url: string): Promise<number> {
  const response = await fetch(url)
  await response.arrayBuffer()
  return response.status
}

/** The samples of `/metrics`, by name and labels as written. */
async function readMetrics(url: string): Promise<Map<string, number>> {
  const response = await fetch(`${url}/metrics`)
  expect(response.status).toBe(200)
  expect(response.headers.get('content-type')).toMatch(/^text\/plain; version=/)
  const lines = (await response.text()).split('\n').filter((line) => /^[a-z]/.test(line))
  return new Map(lines.map((line) => [line.replace(/ \S+$/, ''), Number(line.split(' ').at(-1))]))
}

describe('health', () => {
  it('is alive and ready, without a key', async () => {
    const { service } = await start()
    for (const path of ['/healthz', '/readyz']) expect(await status(service.url + path)).toBe(200)
  })

  it('is not ready while the database is gone, responds quickly, reports no stale gauges, and recovers', async () => {
    const { service, database } = await start()
    const ready = `${service.url}/readyz`
    expect(await status(ready)).toBe(200)
    await database.shutOut()
    try {
      await waitUntil(async () => (await status(ready)) === 503, { what: 'not ready' })
      // The response must not take longer the more connection attempts have failed.
      for (let n = 0; n < 12; n += 1) {
        const asked = performance.now()
        expect(await status(ready)).toBe(503)
        expect(performance.now() - asked).toBeLessThan(5_000)
      }
      expect(await status(`${service.url}/healthz`)).toBe(200)
      const metrics = await readMetrics(service.url)
      expect([metrics.get('sync_due'), metrics.get('sync_lag_seconds')]).toEqual([NaN, NaN])
      expect(metrics.get('process_resident_memory_bytes')).toBeGreaterThan(0)
    } finally {
      await database.letIn()
    }
    // Ready means that one connection is back; on a busy machine the others take a moment longer.
    await waitUntil(async () => (await status(ready)) === 200, { what: 'ready again' })
    const due = async () => (await readMetrics(service.url)).get('sync_due')
    await waitUntil(async () => (await due()) === 0, { what: 'gauges that are current' })
    const notification = signIpn({ svc_TransactionID: 'T-AFTER' })
    expect((await postIpn(service.url, notification)).status).toBe(200)
  })

  it('responds in time even if the database does not', async () => {
    const { service, database } = await start({ settings: { ROLE: 'web' } })
    await database.sql.begin(async (tx) => {
      await tx`lock table transactions, migrations in access exclusive mode`
      expect(await status(`${service.url}/readyz`)).toBe(503)
      expect((await readMetrics(service.url)).get('sync_due')).toBeNaN()
    })
    expect(await status(`${service.url}/readyz`)).toBe(200)
    expect((await readMetrics(service.url)).get('sync_due')).toBe(0)
  })

  it('is not ready while its open sessions are read-only, and opens others', async () => {
    const { service, database } = await start({ settings: { ROLE: 'web' } })
    const { sql } = service.ctx
    const name = new URL(database.url).pathname.slice(1)
    const inEverySession = (statement: string) =>
      Promise.allSettled(
        Array.from({ length: sql.options.max }, () =>
          sql.unsafe(`${statement}; select pg_sleep(0.1)`),
        ),
      )
    await inEverySession('select')
    await database.sql.unsafe(`alter database ${name} set default_transaction_read_only = on`)
    await inEverySession('set session characteristics as transaction read only')
    expect(await status(`${service.url}/readyz`)).toBe(503)
    await database.sql.unsafe(`alter database ${name} reset default_transaction_read_only`)
    await waitUntil(async () => (await status(`${service.url}/readyz`)) === 200, { what: 'ready' })
  })

  it.each([
    ['the probe', 'update on merchant_accounts', '53200', 'the database server has no memory left'],
    ['a notification', 'insert on ipn_events', '53100', 'the disk of the database is full'],
  ])(
    'is not ready once %s (%s) finds no room (%s), says so, and recovers by itself',
    async (_, statement, code, why) => {
      const database = await createTestDatabase()
      onTestFinished(() => database.drop())
      const { service } = await start({ settings: { ROLE: 'web' }, database })
      const ready = `${service.url}/readyz`
      const notification = signIpn({ svc_TransactionID: 'T-FULL' })
      await database.sql.unsafe(`
        create function refuse() returns trigger language plpgsql as
          $$ begin raise exception 'no room' using errcode = '${code}'; end $$;
        create trigger full_disk before ${statement} execute function refuse()`)
      if (statement.includes('ipn')) {
        expect(await status(ready)).toBe(200)
        expect((await postIpn(service.url, notification)).status).toBe(500)
      }
      const answer = await fetch(ready)
      expect([answer.status, await answer.json()]).toEqual([503, { status: 'not ready', why }])
      await database.sql.unsafe('drop function refuse cascade')
      const isReady = async () => (await status(ready)) === 200
      await waitUntil(isReady, { what: 'ready', timeoutMs: 30_000 })
      expect((await postIpn(service.url, notification)).status).toBe(200)
    },
  )

  it('is not ready on a database whose schema is older', async () => {
    const database = await createTestDatabase()
    onTestFinished(() => database.drop())
    const { service } = await start({ settings: { ROLE: 'web' }, database })
    await database.sql`delete from migrations`
    expect(await status(`${service.url}/readyz`)).toBe(503)
  })
})

describe('metrics', () => {
  it('count one notification, its acknowledgement and its query', async () => {
    const rig = await start()
    await rig.control('POST', '/transactions', {
      transactionId: 'T-1',
      payments: [{ amount: '1', paymentMethod: 'QR', status: 'SUCCESS' }],
    })
    const known = async () => (await rig.api('/v1/transactions/T-1')).status === 200
    await waitUntil(known, { what: 'the notification' })
    await rig.transaction('T-1', '?wait=20')
    const wrong = { ...signIpn({ svc_TransactionID: 'T-1' }), svc_SecureHash: 'f'.repeat(64) }
    expect((await postIpn(rig.service.url, wrong)).status).toBe(401)
    const metrics = await readMetrics(rig.service.url)
    expect(Object.fromEntries(metrics)).toMatchObject({
      'ipn_received_total{verdict="stored"}': 1,
      'ipn_received_total{verdict="bad_signature"}': 1,
      ipn_ack_seconds_count: 2,
      'ipn_ack_seconds_bucket{le="10"}': 2,
      sync_due: 0,
      sync_lag_seconds: 0,
      waiting_readers: 0,
      'gateway_call_seconds_count{command="QUERY_PT",outcome="answered"}': 1,
      'gateway_call_seconds_bucket{le="10",command="QUERY_PT",outcome="answered"}': 1,
    })
    const spent = metrics.get('ipn_ack_seconds_sum') ?? 0
    expect(spent).toBeGreaterThan(0.0001)
    expect(spent).toBeLessThan(5)
    expect(metrics.has('process_resident_memory_bytes')).toBe(true)
  })

  it('distinguish the outcomes of calls', async () => {
    const rig = await start({ settings: { SYNC_BACKOFF_MS: '1', SYNC_BACKOFF_MAX_MS: '1' } })
    await rig.control('POST', '/transactions', {
      transactionId: 'T-1',
      payments: [{ amount: '1', paymentMethod: 'QR', status: 'SUCCESS' }],
      ipn: false,
    })
    for (const kind of ['http500', 'code']) {
      await rig.control('POST', '/faults', { command: 'QUERY_PT', kind, times: 1 })
    }
    await rig.api('/v1/transactions/T-1/sync', { method: 'POST' })
    const calls = (outcome: string) =>
      `gateway_call_seconds_count{command="QUERY_PT",outcome="${outcome}"}`
    const happened = async (outcome: string) =>
      (await readMetrics(rig.service.url)).get(calls(outcome)) !== 0
    await waitUntil(() => happened('answered'), { what: 'an answer' })
    await rig.sandbox.stop()
    await rig.api('/v1/transactions/T-2/sync', { method: 'POST' })
    await waitUntil(() => happened('unavailable'), { what: 'a refused connection' })
    const metrics = await readMetrics(rig.service.url)
    expect([metrics.get(calls('unknown')), metrics.get(calls('rejected'))]).toEqual([1, 1])
  })

  it('show how many transactions are due and the age of the oldest', async () => {
    const rig = await start({ settings: { ROLE: 'web' } })
    const ago = (minutes: number) => new Date(Date.now() - minutes * 60_000).toISOString()
    for (const [id, dueAt] of [
      ['T-OLD', ago(60)],
      ['T-YOUNG', ago(1)],
      ['T-LATER', ago(-60)],
      ['T-NEVER', null],
    ] as const) {
      await seedTransaction(rig.database, { transactionId: id, dueAt })
    }
    const metrics = await readMetrics(rig.service.url)
    expect(metrics.get('sync_due')).toBe(2)
    expect(metrics.get('sync_lag_seconds')).toBeGreaterThanOrEqual(3600)
    expect(metrics.get('sync_lag_seconds')).toBeLessThan(3700)
  })

  it('count the waiting readers', async () => {
    const rig = await start({ settings: { ROLE: 'web' } })
    await seedTransaction(rig.database, { transactionId: 'T-1' })
    const leaving = new AbortController()
    const answer = rig.api('/v1/transactions/T-1?wait=60', { signal: leaving.signal })
    const readers = async () => (await readMetrics(rig.service.url)).get('waiting_readers')
    await waitUntil(async () => (await readers()) === 1, { what: 'a reader' })
    leaving.abort()
    await expect(answer).rejects.toThrow()
    await waitUntil(async () => (await readers()) === 0, { what: 'no reader' })
  })
})

describe('the role', () => {
  it('worker serves only health and metrics, and syncs; web takes notifications and does not sync', async () => {
    const web = await start({ settings: { ROLE: 'web' } })
    const asked = vi.spyOn(web.service.ctx.gateway, 'queryPayments')
    const ids = Array.from({ length: 20 }, (_, n) => `T-${n}`)
    for (const transactionId of ids) {
      await web.control('POST', '/transactions', {
        transactionId,
        payments: [{ amount: '1', paymentMethod: 'QR', status: 'SUCCESS' }],
        ipn: false,
      })
      const { status } = await postIpn(
        web.service.url,
        signIpn({ svc_TransactionID: transactionId }),
      )
      expect(status).toBe(200)
    }
    expect((await web.transaction('T-0')).sync.status).toBe('queued')
    const settings = { ROLE: 'worker' }
    const worker = await startTestService(web.database, web.sandbox.url, { settings })
    try {
      // The worker's commit reaches the web process through the database.
      for (const id of ids) {
        expect(await web.transaction(id, '?wait=20')).toMatchObject({ state: 'paid', final: true })
      }
      expect(asked).not.toHaveBeenCalled()
      for (const path of ['/healthz', '/readyz', '/metrics']) {
        expect(await status(worker.url + path)).toBe(200)
      }
      const wrong = await fetch(`${worker.url}/healthz`, { method: 'POST' })
      await expectProblem(wrong, 405, 'method_not_allowed')
      for (const path of ['/v1/transactions', '/v1/transactions/T-0', '/v1/payments']) {
        await expectProblem(await fetch(worker.url + path, withKey()), 404, 'not_found')
      }
      const notification = await fetch(`${worker.url}/ipn`, { method: 'POST' })
      await expectProblem(notification, 404, 'not_found')
    } finally {
      await worker.stop()
    }
  })
})
