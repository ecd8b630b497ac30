import { describe, expect, it, onTestFinished } from 'vitest'
import type { Context } from '../src/context.ts'
import type { Sql } from '../src/db/client.ts'
import { createSlots } from '../src/slots.ts'
import { beginSync, syncDue } from '../src/sync/sync-due.ts'
import { whileUncommitted } from './support/locks.ts'
import { startRefundRig } from './support/refunds.ts'
import { startRig } from './support/service.ts'
import { makeTransaction, registerDue } from './support/sync.ts'
import { waitUntil } from './support/wait-until.ts'

describe('how many may be in flight', () => {
  it('halves with a call that has no answer, once for all that were under way, and never under one', () => {
    const clock = { now: 10 }
    const slots = createSlots(16, { now: () => clock.now })
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
    const slots = createSlots(16, { now: () => 10 })
    slots.learn(false, 11)
    for (let n = 0; n < 9; n += 1) slots.learn(true, 12)
    expect(slots.countLimit()).toBe(9)
    for (let n = 0; n < 1_000; n += 1) slots.learn(true, 12)
    expect(slots.countLimit()).toBe(16)
  })

  it('counts what is in flight when it is halved: nothing is free until enough have ended', () => {
    const slots = createSlots(8, { now: () => 10 })
    expect(slots.takeAll()).toBe(8)
    slots.learn(false, 11)
    expect([slots.countFree(), slots.takeAll()]).toEqual([0, 0])
    slots.give(4)
    expect(slots.countFree()).toBe(0)
    slots.give(1)
    expect([slots.countFree(), slots.takeAll(), slots.takeAll()]).toEqual([1, 1, 0])
  })
})

async function countAnswered({ metrics }: Context): Promise<number> {
  const { values } = await metrics.gatewayCall.get()
  const counts = values.filter(({ metricName }) => metricName?.endsWith('_count'))
  return counts.reduce((sum, { value }) => sum + value, 0)
}

it('the next call is made while answers are being written, and no more than may be written', async () => {
  const rig = await startRig({ settings: { ROLE: 'web', GATEWAY_MAX_CONCURRENCY: '2' } })
  onTestFinished(() => rig.stop())
  const { ctx } = rig.service
  const ids = Array.from({ length: 6 }, (_, n) => `T-WRITTEN-${n}`)
  for (const id of ids) {
    await makeTransaction(rig, id)
    await registerDue(rig, id)
  }
  const rounds: Promise<void>[] = []
  const begin = async () => {
    const { count, finished } = await beginSync(ctx)
    rounds.push(finished)
    return count
  }
  // A settling commit waits for the payments; a claim needs none of them.
  const hold = (held: Sql) => held`lock table payments in exclusive mode`
  await whileUncommitted(rig.database, hold, async (commit) => {
    expect(await begin()).toBe(2)
    await waitUntil(() => ctx.slots.countFree() === 2, { what: 'free slots while answers wait' })
    expect(await begin()).toBe(2)
    await waitUntil(async () => (await countAnswered(ctx)) === 4, { what: 'two more answers' })
    expect([ctx.slots.countFree(), await begin()]).toEqual([0, 0])
    await commit()
    await Promise.all(rounds)
  })
  expect([ctx.slots.countFree(), await syncDue(ctx)]).toEqual([2, 2])
  for (const id of ids) expect(await rig.transaction(id)).toMatchObject({ state: 'paid' })
})

it('a query keeps its slot for the refund that may follow it', async () => {
  const rig = await startRefundRig({ settings: { ROLE: 'web', GATEWAY_MAX_CONCURRENCY: '1' } })
  onTestFinished(() => rig.stop())
  const { ctx } = rig.service
  await makeTransaction(rig, 'T-KEPT', [{ id: 'P-KEPT' }])
  await registerDue(rig, 'T-KEPT')
  await syncDue(ctx)
  const answered = await countAnswered(ctx)
  const { status, body } = await rig.refund('P-KEPT')
  expect(status).toBe(202)
  // Not after the gap that two questions keep between them.
  await rig.database.sql`update transactions set due_at = now()`
  const hold = (held: Sql) => held`lock table payments in exclusive mode`
  const round = await whileUncommitted(rig.database, hold, async () => {
    const begun = await beginSync(ctx)
    const isAnswered = async () => (await countAnswered(ctx)) === answered + 1
    await waitUntil(isAnswered, { what: 'the answer' })
    expect([begun.count, ctx.slots.countFree()]).toEqual([1, 0])
    return begun
  })
  await round.finished
  expect([await rig.sent(body.id), ctx.slots.countFree()]).toEqual([1, 1])
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
