import { beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest'
import { z } from 'zod'
import { listPasses } from '../../../src/background.ts'
import { DISCREPANCY_KINDS } from '../../../src/discrepancies/kinds.ts'
import { expectProblem } from '../../support/api.ts'
import { ask, expectTaken, moveTo } from '../../support/ask.ts'
import { MERCHANT, postIpn, type Rig, signIpn, startRig } from '../../support/service.ts'
import { makeTransaction, notifyOf } from '../../support/sync.ts'
import { useRig } from '../../support/use-started.ts'
import { waitUntil } from '../../support/wait-until.ts'
import { type Family, readExposition, type Sample } from './exposition.ts'

const rig = useRig()

const readMetrics = async ({ service }: Rig = rig) =>
  readExposition(await (await fetch(`${service.url}/metrics`)).text())

/** Starts a service whose metrics tell of nothing but this test. */
async function startUnused(): Promise<Rig> {
  const unused = await startRig()
  onTestFinished(() => unused.stop())
  return unused
}

function find(families: Map<string, Family>, name: string, labels = {}): Sample[] {
  const samples = [...families.values()].flatMap((family) => family.samples)
  const wanted = Object.entries<string>(labels)
  return samples.filter(
    (one) => one.name === name && wanted.every(([label, value]) => one.labels[label] === value),
  )
}

const read = (families: Map<string, Family>, name: string, labels = {}) =>
  find(families, name, labels).map(({ value }) => value)

/** Plays one payment, from the gateway to the order system. */
async function playPayment({ control, api, transaction }: Rig) {
  await control('POST', '/transactions', {
    transactionId: 'T-1',
    payments: [{ id: 'P-1', amount: '10', paymentMethod: 'CC', status: 'SUCCESS' }],
  })
  const isPaid = async () => (await api('/v1/payments/P-1')).status === 200
  await waitUntil(isPaid, { what: 'the payment' })
  await transaction('T-1', '?wait=20')
}

describe('before anything happened', () => {
  it('counters of possible events are 0, so that an alert on an increase sees the first one', async () => {
    const families = await readMetrics(await startUnused())
    for (const verdict of ['stored', 'bad_signature', 'store_failed', 'overloaded']) {
      expect(read(families, 'ipn_received_total', { verdict })).toEqual([0])
    }
    for (const command of ['QUERY_PT', 'REFUND']) {
      for (const outcome of ['answered', 'rejected', 'unavailable', 'unknown']) {
        const labels = { command, outcome }
        expect(read(families, 'gateway_call_seconds_count', labels)).toEqual([0])
      }
    }
    for (const result of ['final', 'abandoned', 'failed', 'lost']) {
      expect(read(families, 'sync_queries_total', { result })).toEqual([0])
    }
    for (const outcome of ['delivered', 'failed', 'disabled']) {
      expect(read(families, 'webhook_deliveries_total', { outcome })).toEqual([0])
    }
    for (const operation of ['query', 'refund']) {
      expect(read(families, 'gateway_breaker_state', { operation })).toEqual([0])
    }
    expect(read(families, 'ipn_missing_total')).toEqual([0])
    expect(find(families, 'discrepancies_total').map(({ value }) => value)).toEqual(
      Object.keys(DISCREPANCY_KINDS).map(() => 0),
    )
  })
})

describe('after a payment', () => {
  beforeAll(() => playPayment(rig))

  it('every metric that the documentation lists has a correct value', async () => {
    const unused = await startUnused()
    const { ctx, url } = unused.service
    await playPayment(unused)
    const wrong = { ...signIpn({ svc_TransactionID: 'T-1' }), svc_SecureHash: 'f'.repeat(64) }
    await postIpn(url, wrong)
    const families = await readMetrics(unused)
    const value = (name: string, labels = {}) => read(families, name, labels)[0]
    expect(value('ipn_received_total', { verdict: 'stored' })).toBe(1)
    expect(value('ipn_received_total', { verdict: 'bad_signature' })).toBe(1)
    expect(value('ipn_ack_seconds_count')).toBe(2)
    expect([value('sync_due'), value('sync_lag_seconds')]).toEqual([0, 0])
    expect(value('sync_queries_total', { result: 'final' })).toBe(1)
    const answered = { command: 'QUERY_PT', outcome: 'answered' }
    expect(value('gateway_call_seconds_count', answered)).toBe(1)
    expect(value('gateway_call_seconds_sum', answered)).toBeGreaterThan(0)
    await unused.control('POST', '/faults', { command: 'QUERY_PT', kind: 'http500', times: 1 })
    const key = { merchantCode: MERCHANT.merchantCode, transactionId: 'T-NONE' }
    for (const _ of [1, 2]) await ctx.gateway.queryPayments(key)
    const after = await readMetrics(unused)
    for (const outcome of ['unknown', 'rejected']) {
      const labels = { command: 'QUERY_PT', outcome }
      expect(read(after, 'gateway_call_seconds_count', labels)).toEqual([1])
    }
    for (const status of ['pending', 'accepted', 'unknown', 'needs_review']) {
      expect(value('refunds', { status })).toBe(0)
      expect(value('refund_age_seconds', { status })).toBe(0)
    }
    expect(value('ipn_missing_total')).toBe(0)
    expect([value('database_up'), value('ipn_waiting'), value('waiting_readers')]).toEqual([
      1, 0, 0,
    ])
    expect(find(families, 'ipn_processor_build_info')[0]?.labels.version).toMatch(/^\d+\.\d+\.\d+$/)
    const loops = listPasses(ctx).map(({ name }) => name)
    expect(loops).toEqual(expect.arrayContaining(['sync', 'publishing', 'webhooks']))
    for (const loop of loops) {
      const at = value('loop_last_round_timestamp_seconds', { loop }) ?? 0
      expect(Math.abs(Date.now() / 1000 - at)).toBeLessThan(90)
    }
  })

  it('refunds that are not final are counted by public status, with the age of the oldest', async () => {
    const response = await ask({ url: rig.service.url }, 'P-1', { amount: '3' })
    const { id } = await expectTaken(response)
    await rig.api(`/v1/refunds/${id}?wait=20`)
    const count = async (status: string) => {
      const families = await readMetrics()
      const [refunds] = read(families, 'refunds', { status })
      const [ageS = NaN] = read(families, 'refund_age_seconds', { status })
      return { refunds, isOld: ageS > 3_600 && ageS < 3_700 }
    }
    await rig.database.sql`update refunds set requested_at = now() - interval '1 hour'`
    expect(await count('needs_review')).toEqual({ refunds: 0, isOld: false })
    await moveTo(rig.database, id, 'needs_review')
    expect(await count('needs_review')).toEqual({ refunds: 1, isOld: true })
    await moveTo(rig.database, id, 'sending')
    expect(await count('pending')).toEqual({ refunds: 1, isOld: true })
    expect(await count('needs_review')).toEqual({ refunds: 0, isOld: false })
    for (const status of ['failed', 'succeeded'] as const) {
      await moveTo(rig.database, id, status)
      // A count may be some milliseconds old.
      const isCounted = async () => (await count(status)).refunds === 1
      await waitUntil(isCounted, { what: `a refund that has ${status}` })
    }
    expect(await count('pending')).toEqual({ refunds: 0, isOld: false })
  })

  it('requests are measured by route, never by path: all unknown paths share one series', async () => {
    await fetch(`${rig.service.url}/v1/secret-${Math.random()}`)
    await fetch(`${rig.service.url}/nowhere/${Math.random()}`, { method: 'PROPFIND' })
    await rig.api('/v1/transactions/T-1')
    const families = await readMetrics()
    const counts = find(families, 'http_request_seconds_count')
    const routes = counts.map(({ labels }) => Object.values(labels).join(' '))
    expect(routes).toEqual(
      expect.arrayContaining([
        '/v1/transactions/{transactionId} GET 2xx',
        '/v1/transactions/{transactionId}?wait GET 2xx',
        'none GET 4xx',
        'none _OTHER 4xx',
      ]),
    )
    expect(routes.filter((route) => /secret|nowhere|PROPFIND|T-1/.test(route))).toEqual([])
    expect(new Set(routes).size).toBe(routes.length)
  })

  it('names, units, HELP and TYPE follow the conventions of Prometheus', async () => {
    const families = await readMetrics()
    expect(families.size).toBeGreaterThan(30)
    for (const [name, { type, help, samples }] of families) {
      expect(name).toMatch(/^[a-z]+(_[a-z0-9]+)*$/)
      expect([name, type]).toEqual([name, name.endsWith('_total') ? 'counter' : type])
      expect([name, name.endsWith('_total')]).toEqual([name, type === 'counter'])
      // Base units alone, and no type in a name (prometheus.io/docs/practices/naming).
      expect(name).not.toMatch(/(_|^)(ms|milliseconds|minutes|hours|kb|mb|percent|ratios)(_|$)/)
      expect(name).not.toMatch(/(_|^)(gauge|counter|histogram|summary)(_|$)/)
      expect(name).not.toMatch(/_(bucket|sum|count)$/)
      expect(['counter', 'gauge', 'histogram']).toContain(type)
      expect(help.length).toBeGreaterThan(10)
      const series = samples.map(({ name: of, labels }) => of + JSON.stringify(labels))
      expect(new Set(series).size).toBe(series.length)
      for (const { name: of, labels } of samples) {
        for (const label of Object.keys(labels)) expect(label).toMatch(/^[a-z]+(_[a-z]+)*$/)
        expect('le' in labels).toBe(of.endsWith('_bucket'))
      }
    }
  })
})

describe('while the database is unreachable', () => {
  it('it is not ready, and says so soon; it acknowledges nothing, no number is stale, failing loops record no new round, and it recovers', async () => {
    const isReady = async () => (await rig.api('/readyz')).status === 200
    const isFailedRound = z.looseObject({ work: z.literal('rounds') })
    const logged = vi.spyOn(rig.service.ctx.log, 'debug')
    const countFailed = () =>
      logged.mock.calls.filter(([facts]) => isFailedRound.safeParse(facts).success).length
    const readRound = async () =>
      read(await readMetrics(), 'loop_last_round_timestamp_seconds', { loop: 'sync' })[0] ?? 0
    await rig.database.shutOut()
    try {
      const isAway = async () => read(await readMetrics(), 'database_up')[0] === 0
      await waitUntil(isAway, { what: 'no database' })
      // The answer must not take longer the more attempts to connect have failed.
      const notification = signIpn({ svc_TransactionID: 'T-AWAY' })
      for (let n = 0; n < 5; n += 1) {
        const asked = performance.now()
        expect(await isReady()).toBe(false)
        const refused = await postIpn(rig.service.url, notification)
        expect(refused).toMatchObject({ status: 500, answer: { respcode: 1 } })
        expect(performance.now() - asked).toBeLessThan(5_000)
      }
      expect((await rig.api('/healthz')).status).toBe(200)
      for (const path of ['/v1/transactions/T-AWAY', '/v1/payments', '/v1/refunds']) {
        const away = await rig.api(path)
        expect(away.headers.get('retry-after')).toBe('1')
        await expectProblem(away, 503, 'unavailable')
      }
      const families = await readMetrics()
      expect(read(families, 'ipn_received_total', { verdict: 'store_failed' })).toEqual([5])
      for (const name of ['sync_due', 'sync_lag_seconds'])
        expect(read(families, name)).toEqual([NaN])
      for (const name of ['refunds', 'refund_age_seconds']) {
        expect(new Set(read(families, name))).toEqual(new Set([NaN]))
      }
      await waitUntil(() => countFailed() > 0, { what: 'a round that fails' })
      const [before, failed] = [await readRound(), countFailed()]
      await waitUntil(() => countFailed() > failed + 1, { what: 'more of them' })
      expect(await readRound()).toBe(before)
    } finally {
      await rig.database.letIn()
    }
    const last = await readRound()
    await waitUntil(async () => (await readRound()) > last, { what: 'a round that ends' })
    const isBack = async () => read(await readMetrics(), 'database_up')[0] === 1
    await waitUntil(isBack, { what: 'the database again' })
    await waitUntil(isReady, { what: 'ready again' })
    await makeTransaction(rig, 'T-AWAY')
    await notifyOf(rig, 'T-AWAY')
    expect(await rig.transaction('T-AWAY', '?wait=20')).toMatchObject({
      state: 'paid',
      ipnCount: 1,
    })
  })
})
