import { expect, it, onTestFinished } from 'vitest'
import type { ServiceContext } from '../../../src/create-context.ts'
import type { Sql } from '../../../src/platform/postgres/types.ts'
import { beginSync, syncDue } from '../../../src/sync/sync-due.ts'
import { borrowRig } from '../../support/borrow-rig.ts'
import { whileUncommitted } from '../../support/locks.ts'
import { startRefundRig } from '../../support/refunds.ts'
import { makeTransaction, registerDue } from '../../support/sync.ts'
import { waitUntil } from '../../support/wait-until.ts'

async function countAnswered({ metrics }: ServiceContext): Promise<number> {
  const { values } = await metrics.gatewayCall.get()
  const counts = values.filter(({ metricName }) => metricName?.endsWith('_count'))
  return counts.reduce((sum, { value }) => sum + value, 0)
}

it('the next call is made while answers are being committed, within the limit of such commits', async () => {
  const rig = await borrowRig({ settings: { ROLE: 'web', GATEWAY_MAX_CONCURRENCY: '2' } })
  onTestFinished(() => rig.stop())
  const { ctx } = rig.service
  const ids = Array.from({ length: 8 }, (_, n) => `T-WRITTEN-${n}`)
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
  // The commit of an answer waits for the payments; a claim does not touch them.
  const hold = (held: Sql) => held`lock table payments in exclusive mode`
  await whileUncommitted(rig.database, hold, async (commit) => {
    expect(await begin()).toBe(2)
    await waitUntil(() => ctx.callSlots.free() === 2, { what: 'free slots while commits wait' })
    expect(await begin()).toBe(2)
    await waitUntil(async () => (await countAnswered(ctx)) === 4, { what: 'two more answers' })
    // Four answers wait for their commit: these two keep their slots.
    expect(await begin()).toBe(2)
    await waitUntil(async () => (await countAnswered(ctx)) === 6, { what: 'the last answers' })
    expect([ctx.callSlots.free(), await begin()]).toEqual([0, 0])
    await commit()
    await Promise.all(rounds)
  })
  expect([ctx.callSlots.free(), await syncDue(ctx)]).toEqual([2, 2])
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
  // Without the gap between two queries of a transaction.
  await rig.database.sql`update transactions set due_at = now()`
  const hold = (held: Sql) => held`lock table payments in exclusive mode`
  const round = await whileUncommitted(rig.database, hold, async () => {
    const begun = await beginSync(ctx)
    const isAnswered = async () => (await countAnswered(ctx)) === answered + 1
    await waitUntil(isAnswered, { what: 'the answer' })
    expect([begun.count, ctx.callSlots.free()]).toEqual([1, 0])
    return begun
  })
  await round.finished
  expect([await rig.sent(body.id), ctx.callSlots.free()]).toEqual([1, 1])
})
