import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { listOutages, noteOutage } from '../../../src/platform/telemetry/outage-log.ts'
import { expectProblem, seedGone, seedTransaction, withKey } from '../../support/api.ts'
import { postIpn, signIpn, startTestService } from '../../support/service.ts'
import { makeTransaction, notifyOf } from '../../support/sync.ts'
import { useRig } from '../../support/use-started.ts'
import { waitUntil } from '../../support/wait-until.ts'

const rig = useRig({ settings: { ROLE: 'web' } })

/** Reads the whole answer: undici throws where a connection that is not kept ends before that. */
async function status(path: string, { url } = rig.service): Promise<number> {
  const response = await fetch(url + path)
  await response.arrayBuffer()
  return response.status
}

/** A sample without labels of `/metrics`. */
async function measure(name: string): Promise<number> {
  const text = await (await fetch(`${rig.service.url}/metrics`)).text()
  return Number(new RegExp(`^${name} (\\S+)$`, 'm').exec(text)?.[1])
}

const untilReady = () =>
  waitUntil(async () => (await status('/readyz')) === 200, { what: 'ready', timeoutMs: 30_000 })

describe('health', () => {
  it('is alive and ready, without a key', async () => {
    for (const path of ['/healthz', '/readyz']) expect(await status(path)).toBe(200)
  })

  it('responds in time even if the database does not', async () => {
    await rig.database.sql.begin(async (tx) => {
      await tx`lock table transactions, migrations in access exclusive mode`
      expect(await status('/readyz')).toBe(503)
      expect(await measure('sync_due')).toBeNaN()
    })
    expect([await status('/readyz'), await measure('sync_due')]).toEqual([200, 0])
  })

  it('is not ready while its open sessions are read-only, and opens others', async () => {
    const { sql } = rig.service.ctx.db
    const name = new URL(rig.database.url).pathname.slice(1)
    const inEverySession = (statement: string) =>
      Promise.allSettled(
        Array.from({ length: sql.options.max }, () =>
          sql.unsafe(`${statement}; select pg_sleep(0.1)`),
        ),
      )
    await inEverySession('select')
    await rig.database.sql.unsafe(`alter database ${name} set default_transaction_read_only = on`)
    await inEverySession('set session characteristics as transaction read only')
    expect(await status('/readyz')).toBe(503)
    await rig.database.sql.unsafe(`alter database ${name} reset default_transaction_read_only`)
    await untilReady()
  })

  it.each([
    ['the probe', 'update on merchant_accounts', '53200', 'the database server has no memory left'],
    ['a notification', 'insert on ipn_events', '53100', 'the disk of the database is full'],
  ])(
    'is not ready once %s (%s) finds no room (%s), says so, and recovers by itself',
    async (_, statement, code, why) => {
      const notification = signIpn({ svc_TransactionID: `T-FULL-${code}` })
      const { sql } = rig.database
      await sql.unsafe(`
        create function refuse() returns trigger language plpgsql as
          $$ begin raise exception 'no room' using errcode = '${code}'; end $$;
        create trigger full_disk before ${statement} execute function refuse()`)
      onTestFinished(async () => void (await sql`drop function if exists refuse cascade`))
      if (statement.includes('ipn')) {
        expect(await status('/readyz')).toBe(200)
        expect((await postIpn(rig.service.url, notification)).status).toBe(500)
      }
      const answer = await fetch(`${rig.service.url}/readyz`)
      expect([answer.status, await answer.json()]).toEqual([503, { status: 'not ready', why }])
      await sql`drop function refuse cascade`
      await untilReady()
      expect((await postIpn(rig.service.url, notification)).status).toBe(200)
    },
  )

  it('is not ready on a database whose schema is older', async () => {
    const { sql } = rig.database
    const rows = await sql`delete from migrations returning *`
    onTestFinished(async () => void (await sql`insert into migrations ${sql(rows)}`))
    expect(await status('/readyz')).toBe(503)
  })
})

describe('metrics', () => {
  it('show how many transactions are due and the age of the oldest', async () => {
    const due = { 'T-OLD': 60, 'T-YOUNG': 1, 'T-LATER': -60, 'T-NEVER': undefined }
    for (const [transactionId, minutesAgo] of Object.entries(due)) {
      const dueAt =
        minutesAgo === undefined ? null : new Date(Date.now() - minutesAgo * 60_000).toISOString()
      await seedTransaction(rig.database, { transactionId, dueAt })
    }
    // Of an account that left the settings, about which nobody asks.
    await seedGone(rig.database, 90)
    expect(await measure('sync_due')).toBe(2)
    const lagS = await measure('sync_lag_seconds')
    expect(lagS).toBeGreaterThanOrEqual(3600)
    expect(lagS).toBeLessThan(3700)
  })

  it('count the waiting readers', async () => {
    await seedTransaction(rig.database, { transactionId: 'T-READ' })
    const leaving = new AbortController()
    const answer = rig.api('/v1/transactions/T-READ?wait=60', { signal: leaving.signal })
    const untilWaiting = (n: number) =>
      waitUntil(async () => (await measure('waiting_readers')) === n, { what: `${n} readers` })
    await untilWaiting(1)
    leaving.abort()
    await expect(answer).rejects.toThrow()
    await untilWaiting(0)
  })
})

describe('the role', () => {
  it('worker says of an outage of the database that background work waits, and nothing of requests', async () => {
    const settings = { ROLE: 'worker' }
    const worker = await startTestService(rig.database, rig.sandbox.url, { settings })
    onTestFinished(() => worker.stop())
    const { log } = worker.ctx
    noteOutage(log, Object.assign(new Error('away'), { code: 'ECONNREFUSED' }), 'rounds')
    expect(listOutages(log)).toMatchObject([
      { name: 'database', meanwhile: 'background work waits' },
    ])
  })

  it('worker serves only health and metrics, and syncs; web takes notifications and does not sync', async () => {
    const asked = vi.spyOn(rig.service.ctx.gateway, 'queryPayments')
    const ids = ['T-ROLE-1', 'T-ROLE-2', 'T-ROLE-3']
    for (const id of ids) {
      await makeTransaction(rig, id)
      await notifyOf(rig, id)
      expect((await rig.transaction(id)).sync.status).toBe('queued')
    }
    const settings = { ROLE: 'worker' }
    const worker = await startTestService(rig.database, rig.sandbox.url, { settings })
    onTestFinished(() => worker.stop())
    // The worker's commit reaches the web process through the database.
    for (const id of ids) {
      expect(await rig.transaction(id, '?wait=20')).toMatchObject({ state: 'paid', final: true })
    }
    expect(asked).not.toHaveBeenCalled()
    for (const path of ['/healthz', '/readyz', '/metrics']) {
      expect(await status(path, worker)).toBe(200)
    }
    const wrong = await fetch(`${worker.url}/healthz`, { method: 'POST' })
    await expectProblem(wrong, 405, 'method_not_allowed')
    for (const path of ['/v1/transactions', `/v1/transactions/${ids[0]}`, '/v1/payments']) {
      await expectProblem(await fetch(worker.url + path, withKey()), 404, 'not_found')
    }
    const notification = await fetch(`${worker.url}/ipn`, { method: 'POST' })
    await expectProblem(notification, 404, 'not_found')
  })
})
