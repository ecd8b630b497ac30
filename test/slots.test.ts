import { describe, expect, it, onTestFinished } from 'vitest'
import { createSlots } from '../src/slots.ts'
import { syncDue } from '../src/sync/sync-due.ts'
import { startRig } from './support/service.ts'
import { makeTransaction, registerDue } from './support/sync.ts'

describe('how many may be in flight', () => {
  it('halves with a call that has no answer, once for all that were under way, and never under one', () => {
    const clock = { now: 10 }
    const slots = createSlots(16, 0, () => clock.now)
    for (let n = 0; n < 16; n += 1) slots.learn(false, 5)
    expect(slots.countLimit()).toBe(8)
    for (let n = 0; n < 10; n += 1) {
      clock.now += 1
      slots.learn(false, clock.now)
    }
    expect(slots.countLimit()).toBe(1)
    expect(slots.takeAll()).toBe(1)
  })

  it('grows back with answers, by one for as many as may be in flight, and never over the total', () => {
    const slots = createSlots(16, 0, () => 10)
    slots.learn(false, 11)
    for (let n = 0; n < 9; n += 1) slots.learn(true, 12)
    expect(slots.countLimit()).toBe(9)
    for (let n = 0; n < 1_000; n += 1) slots.learn(true, 12)
    expect(slots.countLimit()).toBe(16)
  })

  it('counts what is in flight when it is halved: nothing is free until enough have ended', () => {
    const slots = createSlots(8, 0, () => 10)
    expect(slots.takeAll()).toBe(8)
    slots.learn(false, 11)
    expect([slots.countFree(), slots.takeAll()]).toEqual([0, 0])
    slots.give(4)
    expect(slots.countFree()).toBe(0)
    slots.give(1)
    expect([slots.countFree(), slots.takeAll(), slots.takeAll()]).toEqual([1, 1, 0])
  })
})

it('a gateway that fails is asked by fewer at once, and by more again once it answers', async () => {
  const rig = await startRig({ settings: { ROLE: 'web', GATEWAY_MAX_CONCURRENCY: '8' } })
  onTestFinished(() => rig.stop())
  const { ctx } = rig.service
  const ids = Array.from({ length: 8 }, (_, n) => `T-SLOTS-${n}`)
  for (const id of ids) await makeTransaction(rig, id)
  await rig.control('POST', '/faults', { command: 'QUERY_PT', kind: 'http500', times: 8 })
  for (const id of ids) await registerDue(rig, id)
  expect(await syncDue(ctx)).toBe(8)
  expect(ctx.slots.countLimit()).toBe(4)
  await rig.database.sql`update transactions set due_at = now()`
  expect(await syncDue(ctx)).toBe(4)
  expect(await syncDue(ctx)).toBe(4)
  expect(ctx.slots.countLimit()).toBe(5)
  const metrics = await (await fetch(`${rig.service.url}/metrics`)).text()
  expect(metrics).toContain('\ngateway_concurrency_limit 5\n')
})
