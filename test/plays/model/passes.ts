import { repeatCancellations } from './cancellations.ts'
import { isHeld } from './holds.ts'
import { restore, save as saveRows } from './lost-commits.ts'
import { readGatewayStatus, readRefunds } from './read-ledgers.ts'
import { ask, makeRequest } from './requests.ts'
import { defineStep } from './step.ts'
import type { SendFate } from './wire.ts'
import {
  deliverNotification,
  findOpen,
  findSettled,
  note,
  runPass,
  SCHEDULE,
  settle,
  shiftTime,
  type World,
  wake,
} from './world.ts'

/** Syncs until nothing is due; the first REFUND sent, if any, meets this fate. */
export const send = defineStep('send', async (world, fate: SendFate) => {
  if (world.pause) await wake(world)
  world.wire.fate = fate
  await runPass(world, { ask: false })
  world.wire.fate = { kind: 'through' }
  await noteHeldBack(world)
  return 'synced'
})

/** A refund is requested, and sent with this fate unless another one is sent before it. */
export const sendNew = defineStep(
  'sendNew',
  async (world, of: number, amount: number, fate: SendFate) => {
    const id = await ask(world, makeRequest(world, of, amount))
    if (id !== undefined) note(world, 'requested')
    return await send(fate).run(world)
  },
  { length: 2 },
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
  async (world, fault: 'none' | 'reset' | 'code' | 'pause') => {
    if (world.pause) await wake(world)
    const { faults } = world.rig.sandbox.state
    world.wire.pauseQuery = fault === 'pause'
    if (fault === 'reset' || fault === 'code') {
      const some = { times: 1, probability: 1, delayMs: 0, code: 9 }
      faults.push({ command: 'QUERY_PT', kind: fault, ...some })
    }
    await runPass(world, { ask: true })
    world.wire.pauseQuery = false
    faults.length = 0
    return `query: ${fault}`
  },
)

export const wakeUp = defineStep(
  'wakeUp',
  async (world) => {
    if (!world.pause) return undefined
    await wake(world)
    return undefined
  },
  { isPossible: ({ pause }) => pause !== undefined },
)

/**
 * Time passes, and with `works` a sync follows. One exception, the meaning of the confirm window: a gateway that
 * refuses a refund by its answer and makes it all the same shows so before the window is over. A sleeping process has lost its
 * lease to another worker; it does not sleep for days.
 */
export const pass = defineStep('pass', async (world, ms: number, works: boolean) => {
  if (world.pause?.refundId !== undefined && ms >= SCHEDULE.resolveMs) await wake(world)
  for (const [id, until] of world.deniedUntil) {
    if (world.clockMs + ms < until) continue
    const denied = findOpen(world).find(({ requestId }) => requestId === id)
    if (denied) await settle(world, denied, undefined)
    for (const payment of world.payments) {
      if (readGatewayStatus(world, id) !== 'succeeded') continue
      if (payment.refunds.some(({ requestId }) => requestId === id))
        payment.refundedAmountShown = null
    }
  }
  await shiftTime(world, ms)
  if (!world.pause && !works) return 'passed time'
  await runPass(world, { ask: false })
  await noteHeldBack(world)
  return 'passed time and synced'
})

export const save = defineStep(
  'save',
  async (world) => {
    if (world.pause || world.forgets || !world.dedupes || world.renamed.size > 0) return undefined
    world.saved = await saveRows(world)
    return 'saved'
  },
  {
    isPossible: ({ pause, forgets, dedupes, renamed }) =>
      !pause && !forgets && dedupes && renamed.size === 0,
  },
)

/** The commits since `save` are lost. The clients repeat their requests, and the gateway its notifications. */
export const loseCommits = defineStep(
  'loseCommits',
  async (world, notifiedFirst: boolean) => {
    if (world.pause) await wake(world)
    const { saved } = world
    if (!saved) return undefined
    world.saved = undefined
    world.restored = true
    const { cancelled } = world
    await restore(world, saved)
    const notifyAgain = async () => {
      const notified = findSettled(world).filter(({ requestId }) => world.notified.has(requestId))
      for (const refund of notified) await deliverNotification(world, refund)
    }
    if (notifiedFirst) await notifyAgain()
    for (const one of [...world.asked]) {
      if ((await ask(world, one)) === undefined) world.overdrawn.add(one.paymentId)
    }
    await repeatCancellations(
      world,
      [...cancelled].filter((id) => !world.cancelled.has(id)),
    )
    if (!notifiedFirst) await notifyAgain()
    return 'lost commits'
  },
  { isPossible: ({ saved }) => saved !== undefined },
)
