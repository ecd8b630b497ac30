import { expect } from 'vitest'
import { addSealKey, openDataKeys } from '../../../src/db/data-keys.ts'
import { reconcileUnqueried } from '../../../src/maintenance/rechecks.ts'
import { resealData } from '../../../src/maintenance/reseal.ts'
import { readGatewayStatus, readRefunds } from './check.ts'
import { runPass, shiftTime, wake } from './clock.ts'
import { isHeld } from './holds.ts'
import { restore, save as saveRows } from './lost-commits.ts'
import { ask, makeRequest, repeatCancellations } from './requests.ts'
import { defineStep } from './step.ts'
import type { SendFate } from './wire.ts'
import {
  deliverNotification,
  findOpen,
  findSettled,
  note,
  SCHEDULE,
  settle,
  type World,
} from './world.ts'

/** Syncs until nothing is due; the first REFUND sent, if any, meets this fate. */
export const send = defineStep('send', {}, async (world, fate: SendFate) => {
  if (world.pause) await wake(world)
  world.fate = fate
  await runPass(world, { ask: false })
  world.fate = { kind: 'through' }
  await noteHeldBack(world)
  return 'synced'
})

/** A refund is requested, and sent with this fate unless another one is sent before it. */
export const sendNew = defineStep(
  'sendNew',
  { length: 2 },
  async (world, of: number, amount: number, fate: SendFate) => {
    const id = await ask(world, makeRequest(world, of, amount))
    if (id !== undefined) note(world, 'requested')
    return await send(fate).run(world)
  },
)

async function noteHeldBack(world: World): Promise<void> {
  if (world.holds.size === 0) return
  for (const refund of await readRefunds(world)) {
    if (refund.status === 'pending' && isHeld(world, refund)) note(world, 'held back')
  }
}

/** Requests a query, which may fail in its own ways. */
export const query = defineStep(
  'query',
  {},
  async (world, fault: 'none' | 'reset' | 'code' | 'pause') => {
    if (world.pause) await wake(world)
    const { faults } = world.stage.rig.sandbox.state
    world.pausesQuery = fault === 'pause'
    if (fault === 'reset' || fault === 'code') {
      const some = { times: 1, probability: 1, delayMs: 0, code: 9 }
      faults.push({ command: 'QUERY_PT', kind: fault, ...some })
    }
    await runPass(world, { ask: true })
    world.pausesQuery = false
    faults.length = 0
    return `query: ${fault}`
  },
)

export const wakeUp = defineStep(
  'wakeUp',
  { isPossible: ({ pause }: World) => pause !== undefined },
  async (world) => {
    await wake(world)
    return undefined
  },
)

/**
 * Time passes, and with `works` a sync follows. One exception, the meaning of the confirm window: a gateway that
 * refuses a refund by its answer and makes it all the same shows so before the window is over. A sleeping process has lost its
 * lease to another worker; it does not sleep for days.
 */
export const pass = defineStep('pass', {}, async (world, ms: number, works: boolean) => {
  if (world.pause?.refundId !== undefined && ms >= SCHEDULE.resolveMs) await wake(world)
  for (const [id, until] of world.deniedUntil) {
    if (world.clockMs + ms < until) continue
    const denied = findOpen(world).find(({ requestId }) => requestId === id)
    if (denied) await settle(world, denied)
    if (readGatewayStatus(world, id) !== 'succeeded') continue
    for (const payment of world.payments) {
      const isIts = payment.refunds.some(({ requestId }) => requestId === id)
      if (isIts) payment.refundedAmountShown = null
    }
  }
  await shiftTime(world, ms)
  if (!world.pause && !works) return 'passed time'
  await runPass(world, { ask: false })
  await noteHeldBack(world)
  return 'passed time and synced'
})

const maySave = ({ pause, forgets, options, renamed }: World) =>
  !pause && !forgets && options.dedupes && renamed.size === 0

export const save = defineStep('save', { isPossible: maySave }, async (world) => {
  if (!maySave(world)) return undefined
  world.saved = await saveRows(world)
  return 'saved'
})

/** The commits since `save` are lost. The clients repeat their requests, and the gateway its notifications. */
export const loseCommits = defineStep(
  'loseCommits',
  { isPossible: ({ saved }: World) => saved !== undefined },
  async (world, notifiedFirst: boolean) => {
    if (world.pause) await wake(world)
    const { saved, cancelled } = world
    if (!saved) return undefined
    world.saved = undefined
    world.restored = true
    await restore(world, saved)
    const notifyAgain = async () => {
      const notified = findSettled(world).filter(({ requestId }) => world.notified.has(requestId))
      for (const refund of notified) await deliverNotification(world, refund)
    }
    if (notifiedFirst) await notifyAgain()
    for (const one of [...world.asked]) {
      if ((await ask(world, one)) === undefined) world.overdrawn.add(one.paymentId)
    }
    const lost = [...cancelled].filter((id) => !world.cancelled.has(id))
    await repeatCancellations(world, lost)
    if (!notifiedFirst) await notifyAgain()
    return 'lost commits'
  },
)

/** The maintenance of the service, which ends what was not approved or sent in time, of both accounts. */
export async function expireUnsent({ ctx, stage }: World): Promise<void> {
  const { accounts } = stage.rig.service.ctx.config
  await reconcileUnqueried({ ...ctx, config: { ...ctx.config, accounts } })
}

export const expire = defineStep('expire', { shared: true }, async (world) => {
  await expireUnsent(world)
  return 'maintained'
})

/** Half of the processes start with a new key and the old one, the others with both the other way round. */
export const changesKey = defineStep(
  'changesKey',
  { shared: true, isPossible: ({ stage }: World) => stage.roots.next === undefined },
  async (world) => {
    const { roots, rig } = world.stage
    roots.n += 1
    const next = Buffer.alloc(32, roots.n).toString('base64')
    roots.next = next
    const { current } = roots
    const encryption = await openDataKeys(world.sql, { current, previous: next })
    Object.assign(rig.service.ctx, { encryption })
    setEncryption(world, await openDataKeys(world.sql, { current: next, previous: current }))
    return 'changed the key'
  },
)

/** Everything is encrypted again, after which the old key is gone. */
export const reseals = defineStep(
  'reseals',
  { shared: true, isPossible: ({ stage }: World) => stage.roots.next !== undefined },
  async (world) => {
    const { sql } = world
    const { roots, rig } = world.stage
    if (roots.next === undefined) return undefined
    const both = { current: roots.next, previous: roots.current }
    await addSealKey(sql, both)
    // It is in use at once, also for the processes that have not read it yet.
    await sql`update data_keys set created_at = created_at - interval '1 minute'`
    const { unreadable } = await resealData(sql, await openDataKeys(sql, both), 2)
    expect(unreadable).toBe(0)
    roots.current = roots.next
    roots.next = undefined
    const encryption = await openDataKeys(sql, { current: roots.current })
    Object.assign(rig.service.ctx, { encryption })
    setEncryption(world, encryption)
    return 'sealed again'
  },
)

function setEncryption(world: World, encryption: World['ctx']['encryption']): void {
  for (const one of [world, world.other]) if (one) one.ctx = { ...one.ctx, encryption }
}
