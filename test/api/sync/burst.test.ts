import { afterEach, describe, expect, it } from 'vitest'
import { syncDue } from '../../../src/sync/sync-due.ts'
import { beginSync } from '../../support/begin-pass.ts'
import {
  countQueries,
  makeDueNow,
  makeTransaction,
  notifyOf,
  readItem,
  syncAgain,
} from '../../support/sync.ts'
import { clearRig, useRig } from '../../support/use-started.ts'

const rig = useRig({ settings: { ROLE: 'web' } })
afterEach(() => clearRig(rig))

const read = (id: string) => readItem(rig, id)

/** Moves the last query of every transaction to `ms` ago. */
const letPass = (ms: number) => rig.database.sql`
  update transactions set queried_at = now() - ${ms} * interval '1 millisecond'`
/** Makes the gap a thousand times as long, so that it does not elapse on a slow machine. */
const stretchGap = () => rig.database.sql`
  update transactions set queried_at = now(), gap_ms = gap_ms * 1000`

describe('notifications during a running query', () => {
  it('do not start a concurrent one, and lead to exactly one more', async () => {
    await makeTransaction(rig, 'T-1')
    await notifyOf(rig, 'T-1')
    const running = await beginSync(rig.service, 'QUERY_PT')
    for (const n of [1, 2, 3]) await notifyOf(rig, 'T-1', { svc_Amount: n })
    expect((await read('T-1')).leased).toBe(true)
    expect((await read('T-1')).dueInMs).toBeGreaterThan(10_000)
    expect(await syncDue(rig.service.ctx)).toBe(0)
    await running.finish()
    const again = await read('T-1')
    expect(again).toMatchObject({ state: 'paid', leased: false, attempts: 0 })
    expect(again.dueInMs).toBeLessThanOrEqual(again.gapMs)

    await syncAgain(rig, 'T-1')
    expect(await read('T-1')).toMatchObject({ dueInMs: null })
    expect(await syncDue(rig.service.ctx)).toBe(0)
    expect(await countQueries(rig, 'T-1')).toBe(2)
  })
})

describe('a burst', () => {
  it('is spaced by the gap, which doubles up to its maximum and is reset after a quiet time', async () => {
    await makeTransaction(rig, 'T-3')
    await notifyOf(rig, 'T-3')
    expect((await read('T-3')).dueInMs).toBeLessThanOrEqual(0)
    const gaps: unknown[] = []
    for (let n = 1; n <= 7; n += 1) {
      await syncAgain(rig, 'T-3')
      const { gapMs } = await read('T-3')
      await stretchGap()
      await notifyOf(rig, 'T-3', { svc_Amount: n })
      expect((await read('T-3')).dueAfterQueryMs).toBe(1_000 * gapMs)
      await rig.database.sql`update transactions set gap_ms = ${gapMs}`
      gaps.push(gapMs)
    }
    expect(gaps).toEqual([50, 100, 200, 400, 800, 1000, 1000])

    await syncAgain(rig, 'T-3')
    await letPass(2_001)
    await notifyOf(rig, 'T-3', { svc_Amount: 8 })
    expect((await read('T-3')).dueInMs).toBeLessThanOrEqual(0)
    await syncAgain(rig, 'T-3')
    expect((await read('T-3')).gapMs).toBe(50)
  })

  it('is queried at once when the last query is longer ago than the gap', async () => {
    await makeTransaction(rig, 'T-4')
    await notifyOf(rig, 'T-4')
    await syncAgain(rig, 'T-4')
    await letPass(60)
    await notifyOf(rig, 'T-4', { svc_Amount: 1 })
    expect((await read('T-4')).dueInMs).toBeLessThanOrEqual(0)
  })
})

describe('a notification after a failure', () => {
  it('brings the query forward, never closer to the failed one than the gap', async () => {
    await makeTransaction(rig, 'T-5')
    await notifyOf(rig, 'T-5')
    await rig.control('POST', '/faults', { command: 'QUERY_PT', kind: 'http500' })
    await syncAgain(rig, 'T-5')
    await stretchGap()
    await rig.database.sql`update transactions set due_at = now() + interval '2 h', attempts = 9`
    await notifyOf(rig, 'T-5', { svc_Amount: 1 })
    const { dueAfterQueryMs, attempts, leased } = await read('T-5')
    expect(dueAfterQueryMs).toBe(50_000)
    expect({ attempts, leased }).toEqual({ attempts: 0, leased: false })
  })

  it('never postpones a query that is due sooner', async () => {
    await makeTransaction(rig, 'T-6')
    await notifyOf(rig, 'T-6')
    await syncAgain(rig, 'T-6')
    await makeDueNow(rig, 'T-6')
    const before = await read('T-6')
    await notifyOf(rig, 'T-6', { svc_Amount: 1 })
    expect((await read('T-6')).dueAfterQueryMs).toBe(before.dueAfterQueryMs)
  })
})
