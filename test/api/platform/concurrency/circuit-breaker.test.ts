import { afterEach, describe, expect, it, vi } from 'vitest'
import { type Breakers, createBreakers } from '../../../../src/gateway/breakers.ts'
import {
  type CircuitBreaker,
  createCircuitBreaker,
} from '../../../../src/platform/concurrency/circuit-breaker.ts'
import { createSlots } from '../../../../src/platform/concurrency/slots.ts'
import { listOutages } from '../../../../src/platform/telemetry/outage-log.ts'
import { claimDue } from '../../../../src/sync/claim-due.ts'
import { beginSync, findRestMs, syncDue } from '../../../../src/sync/sync-due.ts'
import { makeClient } from '../../../support/gateway.ts'
import type { Rig } from '../../../support/service.ts'
import {
  countQueries,
  makeTransaction,
  notifyOf,
  readItem,
  registerDue,
} from '../../../support/sync.ts'
import { clearRig, useRefundLab, useRig } from '../../../support/use-started.ts'
import { waitUntil } from '../../../support/wait-until.ts'

describe('a breaker', () => {
  const SETTINGS = { failures: 3, pauseMs: 1_000, maxPauseMs: 4_000, untestedMs: 10_000 }
  const fail = (breaker: CircuitBreaker) => breaker.tryAcquire()?.fail()
  const start = () => {
    const clock = { now: 0 }
    return { clock, breaker: createCircuitBreaker(SETTINGS, () => clock.now) }
  }

  it('opens after its number of failures in a row, not when an answer came between them', () => {
    const { breaker } = start()
    for (let n = 0; n < 5; n += 1) {
      fail(breaker)
      fail(breaker)
      breaker.tryAcquire()?.succeed()
    }
    expect([breaker.state(), breaker.waitMs()]).toEqual(['closed', 0])
    for (let n = 0; n < 3; n += 1) fail(breaker)
    expect([breaker.state(), breaker.waitMs()]).toEqual(['open', 1_000])
    expect(breaker.tryAcquire()).toBeUndefined()
  })

  it('lets one probe through at a time, doubles the pause up to its limit, and closes with an answer', () => {
    const { breaker, clock } = start()
    for (let n = 0; n < 3; n += 1) fail(breaker)
    const pauses: number[] = []
    for (let n = 0; n < 4; n += 1) {
      pauses.push(breaker.waitMs())
      clock.now += breaker.waitMs()
      expect([breaker.state(), breaker.waitMs()]).toEqual(['half-open', 0])
      const probe = breaker.tryAcquire()
      expect(probe).toBeDefined()
      expect(breaker.tryAcquire()).toBeUndefined()
      expect(breaker.waitMs()).toBeGreaterThan(0)
      probe?.fail()
    }
    expect(pauses).toEqual([1_000, 2_000, 4_000, 4_000])
    clock.now += 4_000
    breaker.tryAcquire()?.release()
    breaker.tryAcquire()?.succeed()
    expect(breaker.state()).toBe('closed')
    for (let n = 0; n < 3; n += 1) fail(breaker)
    expect(breaker.waitMs()).toBe(1_000)
  })

  it('counts as paused while calls test it, and not for ever when none does', () => {
    const { breaker, clock } = start()
    expect(breaker.isPaused()).toBe(false)
    for (let n = 0; n < 3; n += 1) fail(breaker)
    clock.now += 10_999
    expect([breaker.state(), breaker.isPaused()]).toEqual(['half-open', true])
    clock.now += 1
    expect([breaker.state(), breaker.isPaused()]).toEqual(['half-open', false])
    const probe = breaker.tryAcquire()
    expect([breaker.tryAcquire(), breaker.isPaused()]).toEqual([undefined, true])
    probe?.fail()
    expect([breaker.waitMs(), breaker.isPaused()]).toEqual([2_000, true])
    clock.now += 2_000
    breaker.tryAcquire()?.succeed()
    expect(breaker.isPaused()).toBe(false)
  })

  it('ignores the results of calls that began before it paused', () => {
    const { breaker, clock } = start()
    const early = Array.from({ length: 13 }, () => breaker.tryAcquire())
    for (const permit of early.slice(0, 8)) permit?.fail()
    expect(breaker.waitMs()).toBe(1_000)
    early[8]?.succeed()
    expect(breaker.state()).toBe('open')
    clock.now += 1_000
    const probe = breaker.tryAcquire()
    early[9]?.fail()
    expect(breaker.tryAcquire()).toBeUndefined()
    probe?.succeed()
    for (const permit of early.slice(10)) permit?.fail()
    expect(breaker.state()).toBe('closed')
  })
})

const LONG = { failures: 3, pauseMs: 3_600_000, maxPauseMs: 3_600_000, untestedMs: 0 }
const QUICK = { ...LONG, pauseMs: 1, maxPauseMs: 1 }

/** The breaker of an operation after three failures in a row. */
function openBreaker(breakers: Breakers, operation: 'query' | 'refund') {
  const breaker = breakers.of('UFLIYL', operation)
  for (let n = 0; n < 3; n += 1) breaker.tryAcquire()?.fail()
  return breaker
}
const untilHalfOpen = (breaker: CircuitBreaker) =>
  waitUntil(() => breaker.state() === 'half-open', { what: 'the end of the pause' })

/** Registers due transactions of a test; the gateway remembers the calls about those of other tests. */
async function registerMany(rig: Rig, name: string, count: number): Promise<string[]> {
  const ids = Array.from({ length: count }, (_, n) => `T-${name}-${n}`)
  for (const id of ids) await registerDue(rig, id)
  return ids
}

async function countAll(rig: Rig, ids: readonly string[]): Promise<number> {
  const counts = await Promise.all(ids.map((id) => countQueries(rig, id)))
  return counts.reduce((sum, n) => sum + n, 0)
}

describe('queries of a gateway that does not answer', () => {
  const rig = useRig({ settings: { ROLE: 'web' } })
  afterEach(() => clearRig(rig))
  /** The service's context with breakers and call slots of the test's own. */
  function prepare(settings = LONG, slots = 16) {
    const { ctx } = rig.service
    const breakers = createBreakers(settings)
    const { client } = makeClient(rig.sandbox.url, {}, { breakers })
    return {
      breakers,
      ctx: {
        ...ctx,
        callSlots: createSlots(slots),
        gateway: { ...ctx.gateway, ...client, breakers },
      },
    }
  }

  it('are paused: due transactions stay unclaimed, no attempt is used up, and the loop sleeps', async () => {
    const { ctx } = prepare(LONG, 3)
    await rig.control('POST', '/faults', { command: 'QUERY_PT', kind: 'http500' })
    const ids = await registerMany(rig, 'PAUSED', 8)
    expect(await syncDue(ctx)).toBe(3)
    expect(await syncDue(ctx)).toBe(0)
    expect(await claimDue(ctx, 100)).toEqual([])
    expect(await findRestMs(ctx)).toBe(1_000)
    expect(await countAll(rig, ids)).toBe(3)
    const attempts = await Promise.all(ids.map(async (id) => (await readItem(rig, id)).attempts))
    expect(attempts.toSorted()).toEqual([0, 0, 0, 0, 0, 1, 1, 1])
  })

  it('one claim probes the gateway, and its end starts the next round', async () => {
    const { ctx, breakers } = prepare(QUICK)
    // Final with the first answer: no claim starts the next round by itself.
    for (const id of await registerMany(rig, 'PROBE', 3)) await makeTransaction(rig, id)
    const breaker = openBreaker(breakers, 'query')
    await untilHalfOpen(breaker)
    let woken = 0
    const { count, finished } = await beginSync(ctx, () => {
      woken += 1
    })
    expect(count).toBe(1)
    await finished
    expect([breaker.state(), woken]).toEqual(['closed', 1])
  })

  it('a claim made before the pause is released unchanged, not counted as failed', async () => {
    const { ctx, breakers } = prepare()
    await registerDue(rig, 'T-BEFORE')
    openBreaker(breakers, 'query')
    // As if the breaker had opened between the claim and the call.
    const blind = { ...ctx, gateway: { ...ctx.gateway, breakers: createBreakers(LONG) } }
    expect(await syncDue(blind)).toBe(1)
    const item = await readItem(rig, 'T-BEFORE')
    expect(item).toMatchObject({ attempts: 0, leased: false })
    expect(item.dueInMs).toBeLessThanOrEqual(0)
    expect(await countQueries(rig, 'T-BEFORE')).toBe(0)
    expect(await rig.database.sql`select from gateway_calls`).toHaveLength(0)
  })

  it('refusals are answers: they do not open the breaker', async () => {
    const { ctx, breakers } = prepare()
    await rig.control('POST', '/faults', { command: 'QUERY_PT', kind: 'code', code: 99 })
    await registerMany(rig, 'REFUSED', 6)
    expect(await syncDue(ctx)).toBe(6)
    expect(breakers.of('UFLIYL', 'query').state()).toBe('closed')
  })
})

describe('a running service', () => {
  const SHORT = { failures: 3, pauseMs: 50, maxPauseMs: 100, untestedMs: 0 }
  const settings = { SYNC_MAX_ATTEMPTS: '10', SYNC_BACKOFF_MS: '1', SYNC_BACKOFF_MAX_MS: '1' }
  const rig = useRig({ settings: { ...settings, GATEWAY_MAX_CONCURRENCY: '8' }, breaker: SHORT })

  it('resumes with one probe, then all: nothing is abandoned, however long the outage', async () => {
    await rig.control('POST', '/faults', { command: 'QUERY_PT', kind: 'reset' })
    const ids = Array.from({ length: 12 }, (_, n) => `T-${n}`)
    for (const id of ids) await makeTransaction(rig, id)
    for (const id of ids) await notifyOf(rig, id)
    const breaker = rig.service.ctx.gateway.breakers.of('UFLIYL', 'query')
    await waitUntil(() => breaker.state() !== 'closed', { what: 'a pause' })
    const before = await countAll(rig, ids)
    // Each probe is a single call; without the breaker eight at a time would fail.
    await waitUntil(async () => (await countAll(rig, ids)) >= before + 5, { what: 'five probes' })
    await rig.control('DELETE', '/faults')
    for (const id of ids)
      await waitUntil(async () => (await rig.transaction(id)).state === 'paid', { what: id })
    const abandoned = await rig.database
      .sql`select from transactions where abandoned_at is not null`
    expect([abandoned.length, breaker.state()]).toEqual([0, 'closed'])
  })
})

describe('refunds of a gateway that does not answer them', () => {
  const lab = useRefundLab({ breaker: LONG })
  const quick = useRefundLab({ breaker: QUICK })

  it('are paused: queries continue, no attempt is recorded, and a waiting refund is due when the pause ends', async () => {
    const { breakers } = lab.service.ctx.gateway
    const payment = await lab.open()
    const refundId = await lab.ask(payment, '10')
    openBreaker(breakers, 'refund')
    for (let n = 0; n < 4; n += 1) await lab.pass(payment)
    expect(await lab.sent(refundId)).toBe(0)
    const row = await lab.row(refundId)
    expect(row).toMatchObject({ status: 'pending', attempts: 0, polls: 0 })
    expect(row.dueInMs).toBeGreaterThan(3_500_000)
    expect(row.dueInMs).toBeLessThanOrEqual(3_600_000)
    expect(await lab.database.sql`select from refund_attempts`).toHaveLength(0)
    expect(breakers.of('UFLIYL', 'query').state()).toBe('closed')
  })

  it('only the probe is sent, and its answer releases the others', async () => {
    const [first, second] = [await quick.open(), await quick.open()]
    const ids = [await quick.ask(first, '10'), await quick.ask(second, '10')] as const
    const breaker = openBreaker(quick.service.ctx.gateway.breakers, 'refund')
    await untilHalfOpen(breaker)
    await quick.fault('delay', { delayMs: 1_000 })
    const probe = quick.pass(first)
    await waitUntil(async () => (await quick.sent(ids[0])) === 1, { what: 'the probe' })
    await quick.pass(second)
    expect(await quick.sent(ids[1])).toBe(0)
    expect(await quick.row(ids[1])).toMatchObject({ status: 'pending', attempts: 0 })
    await probe
    expect(await quick.row(ids[0])).toMatchObject({ status: 'accepted' })
    expect(breaker.state()).toBe('closed')
    await quick.pass(second)
    expect(await quick.row(ids[1])).toMatchObject({ status: 'accepted', attempts: 1 })
  })

  it('a failed commit releases the permit: the next refund is the probe', async () => {
    const payment = await quick.open()
    const refundId = await quick.ask(payment, '10')
    const breaker = openBreaker(quick.service.ctx.gateway.breakers, 'refund')
    await untilHalfOpen(breaker)
    await quick.database.sql.unsafe(`
      create function refuse() returns trigger language plpgsql as $$ begin raise 'no' using errcode = 'check_violation'; end $$;
      create trigger refuse before insert on refund_attempts for each row execute function refuse()`)
    await quick.pass(payment)
    // The answer could not be stored: the refund backs off instead of being queried in a loop.
    expect(await quick.row(refundId)).toMatchObject({ status: 'pending', polls: 1 })
    await quick.database.sql`drop function refuse cascade`
    await quick.pass(payment)
    expect(await quick.sent(refundId)).toBe(1)
    expect(breaker.state()).toBe('closed')
  })
})

describe('what is paused', () => {
  const client = { GATEWAY_CLIENT_ID: 'UFLIYL', GATEWAY_CLIENT_SECRET: 'sandbox-UFLIYL' }
  const rig = useRig({ settings: { ...client, ROLE: 'web' }, breaker: LONG })

  it('is shown by /readyz, which stays ready, and by the metrics; cards are 503 with Retry-After, and nothing else is', async () => {
    await rig.control('POST', '/faults', { command: 'cards', kind: 'http500' })
    const read = () => rig.api('/v2/vc/virtual-cards/VC-UFLIYL-0001')
    for (let n = 0; n < 3; n += 1) expect((await read()).status).toBe(502)
    await rig.control('DELETE', '/faults')
    const paused = await read()
    expect([paused.status, paused.headers.get('retry-after')]).toEqual([503, '1'])
    expect(await paused.json()).toMatchObject({ code: 'unavailable' })
    const ready = await rig.api('/readyz')
    expect(ready.status).toBe(200)
    const shown = Object(await ready.json())
    expect(shown).toMatchObject({
      status: 'ready',
      paused: [{ merchantCode: 'UFLIYL', operation: 'cards', state: 'open' }],
    })
    expect(Number.isInteger(shown.paused[0].waitMs)).toBe(true)
    const metrics = await (await rig.api('/metrics')).text()
    expect(metrics).toContain('gateway_breaker_state{merchant="UFLIYL",operation="cards"} 2')
    await makeTransaction(rig, 'T-1')
    await notifyOf(rig, 'T-1')
    expect(await syncDue(rig.service.ctx)).toBe(1)
    expect(await readItem(rig, 'T-1')).toMatchObject({ state: 'paid' })
  })
})

describe('what no call tests any more', () => {
  const client = { GATEWAY_CLIENT_ID: 'UFLIYL', GATEWAY_CLIENT_SECRET: 'sandbox-UFLIYL' }
  const rig = useRig({ settings: client, breaker: { ...QUICK, untestedMs: 3_600_000 } })

  it('is paused in the log and on /readyz for a while, and no outage from then on', async () => {
    await rig.control('POST', '/faults', { command: 'cards', kind: 'http500', times: 3 })
    for (let n = 0; n < 3; n += 1) await rig.api('/v2/vc/virtual-cards/VC-UFLIYL-0001')
    const { log } = rig.service.ctx
    const outages = () => listOutages(log).map(({ name, code }) => `${name}: ${code}`)
    const readPaused = async () => Object(await (await rig.api('/readyz')).json()).paused
    expect(await readPaused()).toMatchObject([{ operation: 'cards', state: 'half-open' }])
    await waitUntil(() => outages().length > 0, { what: 'the outage' })
    expect(outages()).toEqual(['gateway cards UFLIYL: HTTP status 500'])
    const now = performance.now.bind(performance)
    const clock = vi.spyOn(performance, 'now').mockImplementation(() => now() + 3_600_001)
    expect(await readPaused()).toBeUndefined()
    await waitUntil(() => outages().length === 0, { what: 'the end of the outage' })
    clock.mockRestore()
  })
})
