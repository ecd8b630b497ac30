import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { planAhead, requestSlots } from '../../../src/sync/claim-ahead.ts'
import { claimDue } from '../../../src/sync/claim-due.ts'
import type { SyncContext } from '../../../src/sync/context.ts'
import { beginSync } from '../../../src/sync/sync-due.ts'
import type { Claim } from '../../../src/sync/types.ts'
import { OTHER, writeMerchantsFile } from '../../support/api.ts'
import { borrowRig } from '../../support/borrow-rig.ts'
import { MERCHANT, type Rig } from '../../support/service.ts'
import {
  claimOne,
  countQueries,
  makeTransaction,
  readItem,
  registerDue,
} from '../../support/sync.ts'

const [A, B] = [MERCHANT.merchantCode, OTHER.merchantCode]
const IDS = ['T-1', 'T-2', 'T-3', 'T-4', 'T-5']

async function startHere(settings: Record<string, string> = {}): Promise<Rig> {
  const breaker = { failures: 1, pauseMs: 60_000, maxPauseMs: 60_000 }
  const rig = await borrowRig({
    settings: { ROLE: 'web', GATEWAY_MAX_CONCURRENCY: '2', ...settings },
    breaker,
  })
  onTestFinished(() => rig.stop())
  return rig
}

/** As if the calls of an account took 5 ms each. */
function recordFastCall({ queryPace }: SyncContext, merchantCode = A): void {
  queryPace.record(merchantCode, performance.now() - 5)
}

/** Every slot is taken, and two claims wait. */
async function startWaiting(rig: Rig, ctx: SyncContext) {
  for (const id of IDS) await makeTransaction(rig, id)
  for (const id of IDS) await registerDue(rig, id)
  for (let n = 0; n < 2; n += 1) await ctx.limiter.acquire(A).ready
  recordFastCall(ctx)
  const round = await beginSync(ctx, () => {})
  expect([round.count, ctx.limiter.countWaiting(A)]).toEqual([2, 2])
  return round
}

/** Requests slots whose time never runs out. */
function requestForever(ctx: SyncContext, claims: readonly Claim[]): Promise<boolean>[] {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  const requests = requestSlots(ctx, claims)
  vi.useRealTimers()
  return requests
}

async function listUnqueried(rig: Rig): Promise<string[]> {
  const counts = await Promise.all(IDS.map((id) => countQueries(rig, id)))
  return IDS.filter((_, index) => counts[index] === 0)
}

describe('claims ahead of the calls', () => {
  it('wait for a slot, and are queried as calls end; meanwhile no more are claimed', async () => {
    const rig = await startHere()
    const { ctx } = rig.service
    const { finished } = await startWaiting(rig, ctx)
    const next = beginSync(ctx, () => {})
    ctx.limiter.releaseAssigned(A)
    ctx.limiter.releaseAssigned(A)
    expect([ctx.limiter.countAssigned(A), ctx.limiter.countWaiting()]).toEqual([2, 0])
    expect((await next).count).toBe(0)
    await finished
    expect(await listUnqueried(rig)).toHaveLength(3)
    expect([ctx.limiter.countFree(), ctx.limiter.countWaiting()]).toEqual([2, 0])
  })

  it('are released at once when the process stops: due for another process, and not queried', async () => {
    const rig = await startHere()
    const stopping = new AbortController()
    const ctx = { ...rig.service.ctx, stopping: stopping.signal }
    const { finished } = await startWaiting(rig, ctx)
    stopping.abort()
    for (let n = 0; n < 2; n += 1) ctx.limiter.releaseAssigned(A)
    await finished
    expect(await listUnqueried(rig)).toEqual(IDS)
    for (const id of IDS) {
      const { leased, attempts, dueInMs } = await readItem(rig, id)
      expect({ leased, attempts }).toEqual({ leased: false, attempts: 0 })
      expect(dueInMs).toBeLessThanOrEqual(0)
    }
    expect(ctx.limiter.countWaiting()).toBe(0)
  })

  it('get no slot after the process has stopped', async () => {
    const rig = await startHere({ GATEWAY_MAX_CONCURRENCY: '1' })
    const ctx = { ...rig.service.ctx, stopping: AbortSignal.abort() }
    await registerDue(rig, 'T-1')
    const claim = await claimOne(ctx)
    await ctx.limiter.acquire(A).ready
    const [ready] = requestForever(ctx, [claim])
    expect(ctx.limiter.countWaiting()).toBe(0)
    expect(await ready).toBe(false)
  })

  it('are given up when no slot is free for a second: none is claimed ahead until calls end again', async () => {
    const rig = await startHere({ GATEWAY_MAX_CONCURRENCY: '1' })
    const { ctx } = rig.service
    await registerDue(rig, 'T-1')
    const claim = await claimOne(ctx)
    await ctx.limiter.acquire(A).ready
    recordFastCall(ctx)
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    onTestFinished(() => void vi.useRealTimers())
    const [ready] = requestSlots(ctx, [claim])
    expect([ctx.limiter.countWaiting(), planAhead(ctx)]).toEqual([1, 0])
    vi.advanceTimersByTime(1_000)
    expect([await ready, ctx.limiter.countWaiting(), planAhead(ctx)]).toEqual([false, 0, 0])
    recordFastCall(ctx)
    expect(planAhead(ctx)).toBe(1)
  })

  it('are not used when their lease has run for too long, and leave the slot to others', async () => {
    const rig = await startHere({ GATEWAY_MAX_CONCURRENCY: '1' })
    const { ctx } = rig.service
    await registerDue(rig, 'T-1')
    const claim = await claimOne(ctx)
    const late = { ...claim, knownAt: claim.knownAt - 60_000 }
    expect(await Promise.all(requestSlots(ctx, [late]))).toEqual([false])
    expect(ctx.limiter.countFree()).toBe(1)
  })

  it('are not made where calls are slow or unknown, nor with a call rate', async () => {
    const rig = await startHere()
    const { ctx } = rig.service
    for (let n = 0; n < 2; n += 1) await ctx.limiter.acquire(A).ready
    expect(planAhead(ctx)).toBe(0)
    ctx.queryPace.record(A, performance.now() - 1_000)
    expect(planAhead(ctx)).toBe(0)
    ctx.queryPace.forget(A)
    recordFastCall(ctx)
    expect(planAhead(ctx)).toBe(2)
    expect(planAhead({ ...ctx, config: { ...ctx.config, GATEWAY_RATE_PER_S: 10 } })).toBe(0)
  })

  it('are made several at a time: none while more than half of them wait', async () => {
    const rig = await startHere({ GATEWAY_MAX_CONCURRENCY: '4' })
    const { ctx } = rig.service
    recordFastCall(ctx)
    const requests = Array.from({ length: 7 }, () => ctx.limiter.acquire(A))
    expect(planAhead(ctx)).toBe(0)
    requests.at(-1)?.giveUp()
    expect(planAhead(ctx)).toBe(2)
  })

  it('are at most one while it probes the gateway', async () => {
    const rig = await startHere()
    const { ctx } = rig.service
    for (const id of IDS) await registerDue(rig, id)
    const breaker = ctx.breakers.of(A, 'query')
    breaker.tryAcquire()?.fail()
    expect(await claimDue(ctx, 1, 2)).toEqual([])
    const halfOpen = { ...breaker, waitMs: () => 0, state: () => 'half-open' as const }
    const probing = { ...ctx, breakers: { ...ctx.breakers, of: () => halfOpen } }
    for (let n = 0; n < 2; n += 1) await ctx.limiter.acquire(A).ready
    const claims = await claimDue(probing, 0, 2)
    expect(claims).toHaveLength(1)
    const waiting = requestForever(ctx, claims)
    expect(await claimDue(probing, 0, 2)).toEqual([])
    ctx.limiter.releaseAssigned(A)
    expect(await Promise.all(waiting)).toEqual([true])
  })

  it('of one account leave the slots that are reserved for others', async () => {
    const { ctx } = (await startTwo()).service
    for (let n = 0; n < 7; n += 1) await ctx.limiter.acquire(A).ready
    // Its calls do not end soon: nothing of it may wait.
    expect(await claimDue(ctx, 1, 4)).toEqual([])
    recordFastCall(ctx)
    const claims = await claimDue(ctx, 1, 4)
    expect(claims).toHaveLength(5)
    const stopping = new AbortController()
    const waiting = requestForever({ ...ctx, stopping: stopping.signal }, claims)
    expect([ctx.limiter.countWaiting(A), ctx.limiter.countFree()]).toEqual([5, 1])
    stopping.abort()
    expect(await Promise.all(waiting)).toEqual([false, false, false, false, false])
  })

  it('take turns with an account without a call in flight, whose calls may be slow', async () => {
    const rig = await startTwo()
    const { ctx } = rig.service
    for (let n = 0; n < 7; n += 1) await ctx.limiter.acquire(A).ready
    await ctx.limiter.acquire('another').ready
    recordFastCall(ctx)
    await rig.database.sql`
      insert into transactions (merchant_code, transaction_id, due_at) values (${B}, 'S-1', now())`
    expect(await claimDue(ctx, 0, planAhead(ctx))).toContainEqual(
      expect.objectContaining({ merchantCode: B }),
    )
  })

  it('count as calls of their account: the next claim is of another one', async () => {
    const rig = await startTwo()
    const { ctx } = rig.service
    for (let n = 0; n < 4; n += 1) await ctx.limiter.acquire(A).ready
    for (let n = 0; n < 4; n += 1) await ctx.limiter.acquire(B).ready
    const claims = await claimDue(ctx, 0, 2)
    const waiting = requestForever(ctx, claims)
    expect([claims.length, ctx.limiter.countWaiting(A)]).toEqual([2, 2])
    await rig.database.sql`
      insert into transactions (merchant_code, transaction_id, due_at) values (${B}, 'S-1', now())`
    expect(await claimDue(ctx, 1)).toMatchObject([{ merchantCode: B }])
    for (let n = 0; n < 2; n += 1) ctx.limiter.releaseAssigned(B)
    expect(await Promise.all(waiting)).toEqual([true, true])
  })
})

/** A second account, and a burst of the first one. */
async function startTwo(): Promise<Rig> {
  const file = writeMerchantsFile([MERCHANT, OTHER])
  onTestFinished(file.remove)
  const rig = await startHere({ MERCHANTS_FILE: file.path, GATEWAY_MAX_CONCURRENCY: '8' })
  await rig.database.sql`
    insert into transactions (merchant_code, transaction_id, due_at)
    select ${A}, 'S-' || i, now() - interval '1 min' from generate_series(1, 100) as i`
  return rig
}
