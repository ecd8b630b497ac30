import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { countAhead } from '../../../src/sync/claim-ahead.ts'
import { claimDue } from '../../../src/sync/claim-due.ts'
import { beginSync } from '../../../src/sync/sync-due.ts'
import { OTHER, TWO_ACCOUNTS } from '../../support/api.ts'
import { MERCHANT } from '../../support/service.ts'
import { countQueries, makeTransaction, readItem, registerDue } from '../../support/sync.ts'
import { clearRig, useRig } from '../../support/use-started.ts'

const [A, B] = [MERCHANT.merchantCode, OTHER.merchantCode]
const IDS = ['T-1', 'T-2', 'T-3', 'T-4', 'T-5']
/** Four call slots, of which one account has three at most. */
const settings = { ROLE: 'web', ...TWO_ACCOUNTS, GATEWAY_MAX_CONCURRENCY: '4' }
const rig = useRig({ settings, sandbox: { accounts: [MERCHANT, OTHER] } })
const stopping = new AbortController()
let held: (() => void)[] = []
let queriesBefore = 0
beforeEach(async () => {
  rig.service.ctx.queryMs.clear()
  queriesBefore = await countAllQueries()
})
afterEach(async () => {
  for (const release of held.splice(0)) release()
  await clearRig(rig)
})

/** Takes call slots, as if calls were in flight. */
function hold(...accounts: string[]): void {
  held = accounts.flatMap((account) => rig.service.ctx.callSlots.tryTake(account) ?? [])
  expect(held).toHaveLength(accounts.length)
}

/** The account's slots are taken, and two claims of it wait. */
async function startWaiting(ctx = rig.service.ctx) {
  for (const id of IDS.slice(0, 2)) {
    await makeTransaction(rig, id)
    await registerDue(rig, id)
  }
  hold(A, A, A)
  ctx.queryMs.set(A, 5)
  const round = await beginSync(ctx, () => {})
  expect([round.count, ctx.callSlots.waiting(A)]).toEqual([2, 2])
  return round
}

async function countAllQueries(): Promise<number> {
  const counts = await Promise.all(IDS.map((id) => countQueries(rig, id)))
  return counts.reduce((sum, n) => sum + n)
}

async function expectDue(): Promise<void> {
  expect(await countAllQueries()).toBe(queriesBefore)
  for (const id of IDS.slice(0, 2)) {
    const { leased, attempts, dueInMs } = await readItem(rig, id)
    expect({ leased, attempts, isDue: (dueInMs ?? 1) <= 0 }).toEqual({
      ...{ leased: false, attempts: 0, isDue: true },
    })
  }
}

describe('claims ahead of the calls', () => {
  it('wait for a slot, and are queried as calls end', async () => {
    const { finished } = await startWaiting()
    held.pop()?.()
    await finished
    expect(await countAllQueries()).toBe(queriesBefore + 2)
    expect(rig.service.ctx.callSlots.waiting()).toBe(0)
  })

  it('are handed back when no slot is free for a second, and none follow until a call has ended fast', async () => {
    const { ctx } = rig.service
    const { finished } = await startWaiting()
    await finished
    await expectDue()
    expect([ctx.callSlots.waiting(), countAhead(ctx)]).toEqual([0, 0])
    expect(await claimDue(ctx, 1, true)).toEqual([])
  })

  it('are handed back when the process stops, and not queried', async () => {
    const { ctx } = rig.service
    const lifecycle = { ...ctx.lifecycle, stopping: stopping.signal }
    const { finished } = await startWaiting({ ...ctx, lifecycle })
    stopping.abort()
    for (const release of held.splice(0)) release()
    await finished
    await expectDue()
  })

  it('are not made where calls are slow or unknown or fail, nor with a call rate', () => {
    const { ctx } = rig.service
    hold(A, A, B)
    const count = (more = {}) => countAhead({ ...ctx, config: { ...ctx.config, ...more } })
    expect(count()).toBe(0)
    ctx.queryMs.set(A, 500)
    expect(count()).toBe(0)
    ctx.queryMs.set(A, 499)
    expect([count(), count({ GATEWAY_RATE_PER_S: 10 })]).toEqual([4, 0])
    const breaker = { ...ctx.gateway.breakers.of(A, 'query'), state: () => 'open' as const }
    const breakers = { ...ctx.gateway.breakers, of: () => breaker }
    expect(countAhead({ ...ctx, gateway: { ...ctx.gateway, breakers } })).toBe(0)
  })

  it('are made several at a time: none while more than half of them wait', async () => {
    const { ctx } = rig.service
    const { finished } = await startWaiting()
    expect(countAhead(ctx)).toBe(2)
    const third = ctx.callSlots.take(A, 10)
    expect(countAhead(ctx)).toBe(0)
    const release = await third
    release?.()
    await finished
  })

  it('of busy accounts do not keep out one without a call in flight', async () => {
    const { ctx } = rig.service
    for (const id of IDS) await registerDue(rig, id)
    await rig.database.sql`
      insert into transactions (merchant_code, transaction_id, due_at) values (${B}, 'S-1', now())`
    hold(A, A, A, 'another')
    ctx.queryMs.set(A, 5)
    const claims = await claimDue(ctx, countAhead(ctx), true)
    expect(claims.map(({ merchantCode }) => merchantCode).sort()).toEqual([A, A, A, B].sort())
  })
})
