import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { z } from 'zod'
import { createLog } from '../../../../src/platform/telemetry/log.ts'
import { startTracing } from '../../../../src/platform/telemetry/otlp.ts'
import { expectTaken, RECEIVER } from '../../../support/ask.ts'
import { borrowRig } from '../../../support/borrow-rig.ts'
import { CARDS } from '../../../support/cards.ts'
import { holdLocks } from '../../../support/database.ts'
import { waitUntilBlocked } from '../../../support/locks.ts'
import {
  KEY,
  MERCHANT,
  postIpn,
  type Rig,
  type RigOptions,
  signIpn,
} from '../../../support/service.ts'
import { makeTransaction } from '../../../support/sync.ts'
import { useTestDatabase } from '../../../support/use-started.ts'
import { waitUntil } from '../../../support/wait-until.ts'
import { type CollectedSpan, type Collector, startCollector } from './collector.ts'

/** OpenTelemetry's numbers for span kinds. */
const KIND = { internal: 1, server: 2, client: 3, producer: 4, consumer: 5 }

const database = useTestDatabase()

let nth = 0

/** A service whose traces are collected; `end` stops it, so that the last spans are exported. */
async function start(settings: Record<string, string> = {}, more: RigOptions = {}) {
  const collector = await startCollector()
  // What other tests left is not queried: its spans would be collected as well.
  await database.sql`update transactions set due_at = null where lease_id is null`
  const rig = await borrowRig({
    database,
    ...more,
    settings: { OTEL_EXPORTER_OTLP_ENDPOINT: collector.url, ...settings },
  })
  onTestFinished(() => rig.stop())
  return { collector, rig, end: () => rig.service.stop() }
}

/** Creates a payment at the gateway, without a notification. */
async function pay(rig: Rig): Promise<{ transactionId: string; paymentId: string }> {
  nth += 1
  const [transactionId, paymentId] = [`T-${nth}`, `P-${nth}`]
  await makeTransaction(rig, transactionId, [{ id: paymentId, paymentMethod: 'QR' }])
  return { transactionId, paymentId }
}

async function notify(rig: Rig, transactionId: string, more = {}, headers = {}): Promise<void> {
  const body = signIpn({ svc_TransactionID: transactionId, ...more })
  const { status } = await postIpn(rig.service.url, body, {
    'content-type': 'application/json',
    ...headers,
  })
  expect(status).toBe(200)
}

const named = (collector: Collector, name: string) =>
  collector.spans().filter((span) => span.name === name)

function only(collector: Collector, name: string): CollectedSpan {
  const [span, ...others] = named(collector, name)
  if (!span || others.length > 0) throw new Error(`${others.length + 1} spans ${name}`)
  return span
}

describe('a notification', () => {
  it("is one trace up to the stored payment, which does not continue its sender's, but links to it", async () => {
    const { rig, collector, end } = await start()
    const { transactionId } = await pay(rig)
    const theirs = { traceId: '4bf92f3577b34da6a3ce929d0e0e4736', spanId: '00f067aa0ba902b7' }
    // Its unset sampled flag is ignored, too.
    const traceparent = `00-${theirs.traceId}-${theirs.spanId}-00`
    await notify(rig, transactionId, {}, { traceparent })
    await rig.transaction(transactionId, '?wait=20')
    await end()
    const root = only(collector, 'POST /ipn')
    const sync = only(collector, 'sync transaction')
    const query = only(collector, 'QUERY_PT')
    const commit = only(collector, 'commit answer')
    const parents = [root, sync, query, commit].map((span) => span.parentSpanId || undefined)
    expect(parents).toEqual([undefined, root.spanId, sync.spanId, sync.spanId])
    const traces = [root, sync, query, commit].map(({ traceId }) => traceId)
    expect(new Set(traces).size).toBe(1)
    expect(root.traceId).not.toBe(theirs.traceId)
    expect(root.links.map(({ traceId, spanId }) => ({ traceId, spanId }))).toEqual([theirs])
    expect([root, sync, query, commit].map(({ kind }) => kind)).toEqual([
      KIND.server,
      KIND.consumer,
      KIND.client,
      KIND.internal,
    ])
    expect(root.attributes).toMatchObject({
      'http.request.method': 'POST',
      'http.route': '/ipn',
      'http.response.status_code': 200,
      'ipn.verdict': 'stored',
      'ipn.transaction_id': transactionId,
    })
    expect(query.attributes).toMatchObject({
      'server.address': '127.0.0.1',
      'http.response.status_code': 200,
      'gateway.outcome': 'answered',
    })
    expect(sync.attributes).toMatchObject({
      'ipn.transaction_id': transactionId,
      'sync.result': 'final',
    })
    expect(collector.resources()[0]).toMatchObject({ 'service.name': 'ipn-processor' })
  })
})

describe('a request', () => {
  it('with a known key continues the trace of its client, and so does the refund it requests; no secret is exported', async () => {
    const { rig, collector, end } = await start({
      GATEWAY_ACCESS_TOKEN: 'token-hunter2-of-the-cards',
    })
    const { transactionId, paymentId } = await pay(rig)
    await notify(rig, transactionId, { svc_Note: 'hunter2-in-a-body' })
    await rig.transaction(transactionId, '?wait=20')
    const caller = '4bf92f3577b34da6a3ce929d0e0e4736'
    const traceparent = `00-${caller}-00f067aa0ba902b7-01`
    const response = await fetch(`${rig.service.url}/v1/payments/${paymentId}/refunds`, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${KEY}`,
        'content-type': 'application/json',
        'idempotency-key': `key-${nth}`,
        traceparent,
      },
      body: JSON.stringify({ amount: '4', receiver: RECEIVER }),
    })
    const { id } = await expectTaken(response)
    await rig.api(`/v1/refunds/${id}?wait=20`)
    await rig.api(`${CARDS}/4111111111111111`)
    // Without a known key a request begins no span, whatever trace it comes with.
    await fetch(`${rig.service.url}/v1/transactions`, { headers: { traceparent } })
    await end()
    expect(named(collector, 'GET /v1/transactions')).toEqual([])
    const request = only(collector, 'POST /v1/payments/{paymentId}/refunds')
    expect(request).toMatchObject({ traceId: caller, parentSpanId: '00f067aa0ba902b7' })
    const sent = only(collector, 'REFUND')
    const sync = collector.spans().find(({ spanId }) => spanId === sent.parentSpanId)
    expect(sync).toMatchObject({ name: 'sync transaction', traceId: caller })
    expect(sync?.parentSpanId).toBe(request.spanId)
    const steps = collector.spans().filter((span) => span.parentSpanId === sync?.spanId)
    expect(
      steps
        .toSorted((a, b) => a.startTimeUnixNano.localeCompare(b.startTimeUnixNano))
        .map(({ name }) => name),
    ).toEqual(['QUERY_PT', 'commit answer', 'REFUND', 'commit answer'])
    expect(named(collector, 'cards').length).toBeGreaterThan(0)
    const secrets = [
      MERCHANT.secret,
      KEY,
      RECEIVER.accountNumber,
      RECEIVER.accountName,
      '4111111111',
    ]
    for (const secret of [...secrets, 'hunter2', 'svc_SecureHash']) {
      expect(collector.sent()).not.toContain(secret)
    }
  })
})

it('OTEL_TRACES_SAMPLER is applied, also to the query that a notification leads to', async () => {
  vi.stubEnv('OTEL_TRACES_SAMPLER', 'always_off')
  onTestFinished(() => void vi.unstubAllEnvs())
  const { rig, collector, end } = await start()
  vi.unstubAllEnvs()
  const { transactionId } = await pay(rig)
  await notify(rig, transactionId)
  await rig.transaction(transactionId, '?wait=20')
  await end()
  expect(collector.sent()).toBe('')
})

describe('the log', () => {
  const Line = z.looseObject({ msg: z.string(), traceId: z.string().optional() })

  it('has the ids of trace and request in every line, including those of the sync and of a shared commit', async () => {
    const lines: z.infer<typeof Line>[] = []
    const log = createLog('debug', {
      write: (line) => void lines.push(Line.parse(JSON.parse(line))),
    })
    const { rig, collector, end } = await start({}, { log })
    const ids = Array.from({ length: 12 }, (_, n) => `T-LOGGED-${n}`)
    for (const id of ids) await makeTransaction(rig, id, [{}, {}])
    // While the commit of the first answer is blocked, the others are queued and share a commit.
    const locks = await holdLocks(
      database,
      (tx) => tx`lock table gateway_calls in share row exclusive mode`,
    )
    await Promise.all(ids.map((id) => notify(rig, id)))
    await waitUntilBlocked(database, 2)
    await locks.release()
    for (const id of ids) await rig.transaction(id, '?wait=20')
    const wrong = { ...signIpn({ svc_TransactionID: 'T' }), svc_SecureHash: 'f'.repeat(64) }
    await postIpn(rig.service.url, wrong, {
      'content-type': 'application/json',
      'x-request-id': 'wrong-1',
    })
    const sync = { method: 'POST', headers: { 'x-request-id': 'asked-1' } }
    await rig.api(`/v1/transactions/${ids[0]}/sync`, sync)
    await end()
    const traces = new Map(
      named(collector, 'POST /ipn').map(({ traceId, attributes }) => [
        attributes['ipn.transaction_id'],
        traceId,
      ]),
    )
    for (const msg of ['discrepancy found', 'transaction synced']) {
      const matching = lines.filter((line) => line.msg === msg)
      const own = matching.filter(
        ({ transactionId, traceId }) => traces.get(transactionId) === traceId,
      )
      expect([msg, matching.length >= 12, own.length >= 12]).toEqual([msg, true, true])
    }
    const disagree = lines.filter(({ msg }) => msg === 'discrepancy found')
    expect(disagree.every((one) => traces.get(one.transactionId) === one.traceId)).toBe(true)
    const find = (msg: string) => lines.find((line) => line.msg === msg)
    const hex = { traceId: expect.stringMatching(/^[\da-f]{32}$/), spanId: expect.any(String) }
    expect(find('notification refused')).toMatchObject({ ...hex, requestId: 'wrong-1' })
    expect(find('sync requested')).toMatchObject({ ...hex, requestId: 'asked-1' })
    const asked = only(collector, 'POST /v1/transactions/{transactionId}/sync')
    expect(find('sync requested')?.traceId).toBe(asked.traceId)
  })
})

describe('an unreachable collector', () => {
  /** Exports almost at once and with short time-outs, so that each batch fails on its own. */
  function exportQuickly(timeoutMs: number) {
    vi.stubEnv('OTEL_BSP_SCHEDULE_DELAY', '5')
    vi.stubEnv('OTEL_EXPORTER_OTLP_TIMEOUT', String(timeoutMs))
    vi.stubEnv('OTEL_BSP_EXPORT_TIMEOUT', String(timeoutMs))
    onTestFinished(() => void vi.unstubAllEnvs())
  }

  it('is one log line however often it refuses, and its return another; payments continue', async () => {
    exportQuickly(10_000)
    const { rig, collector } = await start()
    const log = rig.service.ctx.log
    const [warn, info] = [vi.spyOn(log, 'warn'), vi.spyOn(log, 'info')]
    collector.answerWith(400)
    for (const refused of [1, 2]) {
      const { transactionId } = await pay(rig)
      await notify(rig, transactionId)
      expect((await rig.transaction(transactionId, '?wait=20')).state).toBe('paid')
      await waitUntil(() => collector.count() >= refused, { what: `batch ${refused}` })
    }
    await waitUntil(() => warn.mock.calls.length > 0, { what: 'the warning' })
    collector.answerWith(200)
    const { transactionId } = await pay(rig)
    await notify(rig, transactionId)
    const isBack = () => info.mock.calls.some(([line]) => line === 'traces are exported again')
    await waitUntil(isBack, { what: 'the line of its return' })
    expect(warn.mock.calls.map(([, line]) => line)).toEqual([
      'traces cannot be exported and are dropped; check the collector',
    ])
  })

  it('does not delay the stop: spans that cannot be exported within a second are dropped', async () => {
    exportQuickly(600_000)
    const { rig, collector, end } = await start()
    collector.answerWith(undefined)
    const { transactionId } = await pay(rig)
    await notify(rig, transactionId)
    await rig.transaction(transactionId, '?wait=20')
    await end()
  })
})

it('a remembered parent is recalled once, for a minute, and the newest thousand are kept', async () => {
  const tracing = startTracing('http://127.0.0.1:1', '0.0.0', createLog('silent'))
  vi.useFakeTimers({ toFake: ['performance'] })
  onTestFinished(() => {
    vi.useRealTimers()
  })
  const describeSpan = () => ({ name: 'request', kind: 'internal' as const })
  await tracing.run(describeSpan, async () => {
    for (let n = 0; n <= 1_000; n += 1) tracing.remember(`T-${n}`)
  })
  expect(tracing.recall('T-0')).toBeUndefined()
  expect(tracing.recall('T-1')).toMatch(/^00-[\da-f]{32}-[\da-f]{16}-01$/)
  expect(tracing.recall('T-1')).toBeUndefined()
  vi.advanceTimersByTime(60_000)
  expect(tracing.recall('T-2')).toBeUndefined()
  vi.useRealTimers()
  await tracing.stop()
})

it('without a collector nothing of the SDK is loaded, with one it is', async () => {
  const program = `
    import { createRequire } from 'node:module'
    import { readConfig } from './src/config/config.ts'
    import { createLog } from './src/platform/telemetry/log.ts'
    import './src/service.ts'
    import { openTracing } from './src/create-context.ts'
    const { cache } = createRequire(import.meta.url)
    const count = (form) => Object.keys(cache).filter((file) => form.test(file)).length > 0
    const SDK = /@opentelemetry[/\\\\](?!api[/\\\\])/
    const config = readConfig({ DEMO: 'true' })
    await openTracing(config, createLog('silent'))
    const without = count(SDK)
    const endpoint = 'http://127.0.0.1:4318'
    await openTracing({ ...config, OTEL_EXPORTER_OTLP_ENDPOINT: endpoint }, createLog('silent'))
    console.log(JSON.stringify({ others: count(/prom-client/), without, after: count(SDK) }))`
  const { stdout } = await promisify(execFile)(
    process.execPath,
    ['--import', 'tsx', '--input-type=module', '--eval', program],
    { cwd: fileURLToPath(new URL('../../../..', import.meta.url)) },
  )
  expect(JSON.parse(stdout)).toEqual({ others: true, without: false, after: true })
})
