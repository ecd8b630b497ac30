import type { StoredRefund } from '../../nightly/audit/ledgers.ts'
import { checkAccounts, checkIn, readRefunds } from './check.ts'
import { runPass, shiftTime, wake } from './clock.ts'
import { releaseAll } from './holds.ts'
import {
  decide,
  findRightExternal,
  findRightOutcome,
  listExternal,
  postExternal,
} from './people.ts'
import { expireUnsent } from './service.ts'
import {
  deliverNotification,
  findOpen,
  findSettled,
  note,
  SCHEDULE,
  settle,
  type World,
  type Worlds,
} from './world.ts'

const ROUNDS = 8
const EXPIRED = ['approval_expired', 'not_sent_in_time']
const ACTIVE: readonly string[] = ['awaiting_approval', 'pending', 'sending', 'accepted', 'unknown']

/**
 * Everything settles, every notification arrives, and time passes: then only what is known to be open is wrong. People
 * decide that by the ledger: then the refunds of both accounts agree with it exactly.
 */
export async function finish(worlds: Worlds): Promise<void> {
  for (const world of worlds) await wake(world)
  // What has expired of either account by now is not to expire while the other one is finished.
  await expireUnsent(worlds[0])
  await checkAccounts(worlds, undefined)
  for (const world of worlds) {
    if (!world.options.staysHeld) await releaseAll(world)
    await comeToRest(worlds, world)
    await checkIn(world, 'rest')
    await beRighted(worlds, world)
    const refunds = await checkIn(world, 'settled')
    for (const { status, failure } of refunds) {
      const end = EXPIRED.includes(failure ?? '') ? failure : status
      if (!ACTIVE.includes(status) && status !== 'needs_review') note(world, `ended: ${end}`)
    }
  }
}

async function comeToRest(worlds: Worlds, world: World): Promise<void> {
  for (let round = 0; round < ROUNDS; round += 1) {
    const isActive = (await readRefunds(world)).some(({ status }) => ACTIVE.includes(status))
    if (round > 0 && !isActive && findOpen(world).length === 0) break
    for (const payment of world.payments) {
      payment.refundedAmountShown = null
      payment.listed = true
      payment.status = 'SUCCESS'
    }
    for (const refund of findOpen(world)) await settle(world, refund)
    const unnotified = findSettled(world).filter(({ requestId }) => !world.notified.has(requestId))
    for (const refund of unnotified) await deliverNotification(world, refund)
    await syncAfter(worlds, world, round === 0 ? 0 : SCHEDULE.resendMs)
    await syncAfter(worlds, world, SCHEDULE.confirmMs)
    await syncAfter(worlds, world, SCHEDULE.resolveMs)
  }
}

/** People decide everything that the ledger contradicts, until nothing is left to decide. */
async function beRighted(worlds: Worlds, world: World): Promise<void> {
  for (let round = 0; round < ROUNDS; round += 1) {
    const own = (await readRefunds(world)).filter((one) => isWrong(world, one))
    const external = await listWrong(world)
    if (own.length + external.length === 0) return
    for (const { id } of own) if (await decide(world, id)) note(world, 'righted')
    for (const one of external) {
      if (await rightExternal(world, one)) note(world, 'righted an external refund')
    }
    await syncAfter(worlds, world, 0)
    await syncAfter(worlds, world, SCHEDULE.confirmMs)
  }
}

function isWrong(world: World, refund: StoredRefund): boolean {
  const right = findRightOutcome(world, refund)
  const isRight = refund.status === right && !refund.inferred
  // What came back has failed as well as returned, once its amount is released.
  return right === 'returned' ? !refund.released : !isRight
}

type External = Awaited<ReturnType<typeof listExternal>>[number]

async function listWrong(world: World): Promise<External[]> {
  return (await listExternal(world)).filter(({ requestId, state }) => {
    const right = findRightExternal(world, requestId)
    return right !== undefined && state !== 'own' && state !== right
  })
}

/** @returns false while nothing of the payment is left that it could be: others are decided first */
async function rightExternal(world: World, one: External): Promise<boolean> {
  const outcome = findRightExternal(world, one.requestId)
  if (outcome === undefined) return false
  const refused = await postExternal(world, one, { outcome, againstEvidence: true })
  return refused === undefined
}

async function syncAfter(worlds: Worlds, world: World, afterMs: number): Promise<void> {
  if (afterMs > 0) await shiftTime(world, afterMs)
  await expireUnsent(world)
  await runPass(world, { ask: true })
  await checkAccounts(worlds, world)
}
