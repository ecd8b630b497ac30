import { describe, expect, it, onTestFinished } from 'vitest'
import {
  type CircuitBreaker,
  createCircuitBreaker,
} from '../../../../src/platform/concurrency/circuit-breaker.ts'
import { claimDue } from '../../../../src/sync/claim-due.ts'
import { beginSync, findRestMs, syncDue } from '../../../../src/sync/sync-due.ts'
import { borrowRig } from '../../../support/borrow-rig.ts'
import { startRefundLab } from '../../../support/refund-lab.ts'
import type { Rig, RigOptions } from '../../../support/service.ts'
import {
  countQueries,
  makeTransaction,
  notifyOf,
  readItem,
  registerDue,
} from '../../../support/sync.ts'
import { waitUntil } from '../../../support/wait-until.ts'

describe('a breaker', () => {
  const SETTINGS = { failures: 3, pauseMs: 1_000, maxPauseMs: 4_000 }
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

const LONG = { failures: 3, pauseMs: 3_600_000, maxPauseMs: 3_600_000 }
const SHORT = { failures: 3, pauseMs: 50, maxPauseMs: 100 }

async function startHere(options: RigOptions): Promise<Rig> {
  const rig = await borrowRig(options)
  onTestFinished(() => rig.stop())
  return rig
}

async function registerMany(rig: Rig, count: number): Promise<string[]> {
  const ids = Array.from({ length: count }, (_, n) => `T-${n}`)
  for (const id of ids) await registerDue(rig, id)
  return ids
}

async function countAll(rig: Rig, ids: readonly string[]): Promise<number> {
  const counts = await Promise.all(ids.map((id) => countQueries(rig, id)))
  return counts.reduce((sum, n) => sum + n, 0)
}

describe('queries of a gateway that does not answer', () => {
  it('are paused: due transactions stay unclaimed, no attempt is used up, and the loop sleeps', async () => {
    const rig = await startHere({
      settings: { ROLE: 'web', GATEWAY_MAX_CONCURRENCY: '3' },
      breaker: LONG,
    })
    const { ctx } = rig.service
    await rig.control('POST', '/faults', { command: 'QUERY_PT', kind: 'http500' })
    const ids = await registerMany(rig, 8)
    expect(await syncDue(ctx)).toBe(3)
    expect(await syncDue(ctx)).toBe(0)
    expect(await claimDue(ctx, 100)).toEqual([])
    expect(await findRestMs(ctx)).toBe(1_000)
    expect(await countAll(rig, ids)).toBe(3)
    const attempts = await Promise.all(ids.map(async (id) => (await readItem(rig, id)).attempts))
    expect(attempts.toSorted()).toEqual([0, 0, 0, 0, 0, 1, 1, 1])

    const ready = await fetch(`${rig.service.url}/readyz`)
    expect(ready.status).toBe(200)
    expect(await ready.json()).toMatchObject({
      status: 'ready',
      paused: [{ merchantCode: 'UFLIYL', operation: 'query', state: 'open' }],
    })
    const metrics = await (await fetch(`${rig.service.url}/metrics`)).text()
    expect(metrics).toContain('gateway_breaker_state{merchant="UFLIYL",operation="query"} 2')
  })

  it('one claim probes the gateway, and its end starts the next round', async () => {
    const rig = await startHere({
      settings: { ROLE: 'web' },
      breaker: { ...LONG, pauseMs: 1, maxPauseMs: 1 },
    })
    const { ctx } = rig.service
    // Final with the first answer: no claim starts the next round by itself.
    for (const id of await registerMany(rig, 3)) await makeTransaction(rig, id)
    const breaker = ctx.gateway.breakers.of('UFLIYL', 'query')
    for (let n = 0; n < 3; n += 1) breaker.tryAcquire()?.fail()
    await waitUntil(() => breaker.state() === 'half-open', { what: 'the end of the pause' })
    let woken = 0
    const { count, finished } = await beginSync(ctx, () => {
      woken += 1
    })
    expect(count).toBe(1)
    await finished
    expect([breaker.state(), woken]).toEqual(['closed', 1])
  })

  it('a claim made before the pause is released unchanged, not counted as failed', async () => {
    const rig = await startHere({
      settings: { ROLE: 'web', GATEWAY_MAX_CONCURRENCY: '16' },
      breaker: LONG,
    })
    const { ctx } = rig.service
    await registerDue(rig, 'T-1')
    for (let n = 0; n < 3; n += 1) ctx.gateway.breakers.of('UFLIYL', 'query').tryAcquire()?.fail()
    // As if the breaker had opened between the claim and the call.
    const breakers = { ...ctx.gateway.breakers, of: () => createCircuitBreaker(LONG) }
    const blind = { ...ctx, gateway: { ...ctx.gateway, breakers } }
    expect(await syncDue(blind)).toBe(1)
    expect(await readItem(rig, 'T-1')).toMatchObject({ attempts: 0, leased: false })
    expect((await readItem(rig, 'T-1')).dueInMs).toBeLessThanOrEqual(0)
    expect(await countQueries(rig, 'T-1')).toBe(0)
    const [calls] = await rig.database.sql`select count(*)::int as n from gateway_calls`
    expect(calls?.n).toBe(0)
  })

  it('resume with one probe, then all: nothing is abandoned, however long the outage', async () => {
    const rig = await startHere({
      settings: {
        GATEWAY_MAX_CONCURRENCY: '8',
        SYNC_MAX_ATTEMPTS: '10',
        SYNC_BACKOFF_MS: '1',
        SYNC_BACKOFF_MAX_MS: '1',
      },
      breaker: SHORT,
    })
    await rig.control('POST', '/faults', { command: 'QUERY_PT', kind: 'reset' })
    const ids = Array.from({ length: 30 }, (_, n) => `T-${n}`)
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
    const [row] = await rig.database.sql`
      select count(*)::int as n from transactions where abandoned_at is not null`
    expect(row?.n).toBe(0)
    expect(breaker.state()).toBe('closed')
  })

  it('refusals are answers: they do not open the breaker', async () => {
    const rig = await startHere({ settings: { ROLE: 'web' }, breaker: LONG })
    await rig.control('POST', '/faults', { command: 'QUERY_PT', kind: 'code', code: 99 })
    for (const id of await registerMany(rig, 6))
      expect([id, await syncDue(rig.service.ctx)]).toBeDefined()
    expect(rig.service.ctx.gateway.breakers.of('UFLIYL', 'query').state()).toBe('closed')
  })
})

describe('refunds of a gateway that does not answer them', () => {
  it('are paused: queries continue, no attempt is recorded, and a waiting refund is due when the pause ends', async () => {
    const lab = await startRefundLab({ breaker: LONG })
    onTestFinished(() => lab.stop())
    const { ctx } = lab.service
    const payment = await lab.open()
    const refundId = await lab.ask(payment, '10')
    const breaker = ctx.gateway.breakers.of('UFLIYL', 'refund')
    for (let n = 0; n < 3; n += 1) breaker.tryAcquire()?.fail()
    for (let n = 0; n < 4; n += 1) await lab.pass(payment)
    expect(await lab.sent(refundId)).toBe(0)
    const row = await lab.row(refundId)
    expect(row).toMatchObject({ status: 'pending', attempts: 0, polls: 0 })
    expect(row.dueInMs).toBeGreaterThan(3_500_000)
    expect(row.dueInMs).toBeLessThanOrEqual(3_600_000)
    const [attempts] = await lab.database.sql`select count(*)::int as n from refund_attempts`
    expect(attempts?.n).toBe(0)
    expect(ctx.gateway.breakers.of('UFLIYL', 'query').state()).toBe('closed')
  })

  it('only the probe is sent, and its answer releases the others', async () => {
    const lab = await startRefundLab({
      breaker: { ...LONG, pauseMs: 1, maxPauseMs: 1 },
      settings: { GATEWAY_TIMEOUT_MS: '5000' },
    })
    onTestFinished(() => lab.stop())
    const { ctx } = lab.service
    const [first, second] = [await lab.open(), await lab.open()]
    const ids = [await lab.ask(first, '10'), await lab.ask(second, '10')] as const
    const breaker = ctx.gateway.breakers.of('UFLIYL', 'refund')
    for (let n = 0; n < 3; n += 1) breaker.tryAcquire()?.fail()
    await waitUntil(() => breaker.state() === 'half-open', { what: 'the end of the pause' })
    await lab.fault('delay', { delayMs: 1_500 })
    const probe = lab.pass(first)
    await waitUntil(async () => (await lab.sent(ids[0])) === 1, { what: 'the probe' })
    await lab.pass(second)
    expect(await lab.sent(ids[1])).toBe(0)
    expect(await lab.row(ids[1])).toMatchObject({ status: 'pending', attempts: 0 })
    await probe
    expect(await lab.row(ids[0])).toMatchObject({ status: 'accepted' })
    expect(breaker.state()).toBe('closed')
    await lab.pass(second)
    expect(await lab.row(ids[1])).toMatchObject({ status: 'accepted', attempts: 1 })
  })

  it('a failed commit releases the permit: the next refund is the probe', async () => {
    const lab = await startRefundLab({ breaker: { ...LONG, pauseMs: 1, maxPauseMs: 1 } })
    onTestFinished(() => lab.stop())
    const payment = await lab.open()
    const refundId = await lab.ask(payment, '10')
    const breaker = lab.service.ctx.gateway.breakers.of('UFLIYL', 'refund')
    for (let n = 0; n < 3; n += 1) breaker.tryAcquire()?.fail()
    await waitUntil(() => breaker.state() === 'half-open', { what: 'the end of the pause' })
    await lab.database.sql.unsafe(`
      create function refuse() returns trigger language plpgsql as $$ begin raise 'no' using errcode = 'check_violation'; end $$;
      create trigger refuse before insert on refund_attempts for each row execute function refuse()`)
    await lab.pass(payment)
    // The answer could not be stored: the refund backs off instead of being queried in a loop.
    expect(await lab.row(refundId)).toMatchObject({ status: 'pending', polls: 1 })
    await lab.database.sql`drop function refuse cascade`
    await lab.pass(payment)
    expect(await lab.sent(refundId)).toBe(1)
    expect(breaker.state()).toBe('closed')
  })
})

describe('card reads of a gateway that does not answer them', () => {
  it('are answered 503 with Retry-After while they are paused, and nothing else is', async () => {
    const rig = await startHere({
      settings: {
        ROLE: 'web',
        GATEWAY_CLIENT_ID: 'UFLIYL',
        GATEWAY_CLIENT_SECRET: 'sandbox-UFLIYL',
      },
      breaker: LONG,
    })
    await rig.control('POST', '/faults', { command: 'cards', kind: 'http500' })
    const read = () => rig.api('/v2/vc/virtual-cards/VC-UFLIYL-0001')
    for (let n = 0; n < 3; n += 1) expect((await read()).status).toBe(502)
    await rig.control('DELETE', '/faults')
    const paused = await read()
    expect([paused.status, paused.headers.get('retry-after')]).toEqual([503, '1'])
    expect(await paused.json()).toMatchObject({ code: 'unavailable' })
    await makeTransaction(rig, 'T-1')
    await notifyOf(rig, 'T-1')
    expect(await syncDue(rig.service.ctx)).toBe(1)
    expect(await readItem(rig, 'T-1')).toMatchObject({ state: 'paid' })
  })
})
