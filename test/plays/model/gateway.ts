import type { SandboxPayment } from '../../../src/sandbox/state.ts'
import { readRefunds, sumUnsent } from './check.ts'
import { runPass } from './clock.ts'
import { defineStep, hasOpen, hasSettled, pick } from './step.ts'
import {
  countTaken,
  deliverNotification,
  findOpen,
  findSettled,
  refundElsewhere,
  SCHEDULE,
  settle,
  showsNow,
  sum,
  type World,
} from './world.ts'

export const settleOne = defineStep(
  'settleOne',
  hasOpen,
  async (world, which: number, failureCode: number | undefined) => {
    const refund = pick(findOpen(world), which)
    if (!refund) return undefined
    await settle(world, refund, failureCode)
    return failureCode === undefined ? 'settled' : 'settled as failed'
  },
)

/** A notification of a settled refund, for the first time or again. */
export const notify = defineStep(
  'notify',
  hasSettled,
  async (world, which: number, copies: number) => {
    const refund = pick(findSettled(world), which)
    if (!refund) return undefined
    const isFirst = !world.notified.has(refund.requestId)
    for (let copy = 0; copy < copies; copy += 1) await deliverNotification(world, refund)
    return isFirst ? 'notified' : 'notified again'
  },
)

/** A notification that the refund is still in progress. */
export const notifyOpen = defineStep('notifyOpen', hasOpen, async (world, which: number) => {
  const refund = pick(findOpen(world), which)
  if (!refund) return undefined
  await deliverNotification(world, refund, { code: 99 })
  return 'notified of progress'
})

/**
 * A refund made elsewhere, within what the gateway has left. One exception, documented as the remaining risk: while the
 * service cannot know of it (the ledger lags, or a process that has queried sleeps before it sends) it leaves alone what
 * the service has reserved, and its notification is not late.
 */
export const refundInPortal = defineStep(
  'refundInPortal',
  {},
  async (world, of: number, amount: number, late: boolean) => {
    const payment = pick(world.payments, of)
    if (!payment) return undefined
    const lags = payment.refundedAmountShown !== null
    const hidden = lags || world.pause !== undefined
    const unsent = hidden ? sumUnsent(world, await readRefunds(world), payment.id) : 0
    const wanted = sum([{ amount: countTaken(payment) }, { amount: unsent }, { amount }])
    if (wanted > Number(payment.amount)) return undefined
    const refund = await refundElsewhere(world, payment, amount)
    if (late && !lags) return 'refunded elsewhere, notified late'
    await deliverNotification(world, refund)
    return 'refunded elsewhere'
  },
)

/**
 * A refund made elsewhere that has the request id, payment and amount of a refund of the other account. It is notified at
 * once: as a success if it is within what is left, or else as a failure.
 */
export const refundWithTheirId = defineStep(
  'refundWithTheirId',
  { isPossible: ({ other }) => other !== undefined && other.asked.length > 0 },
  async (world, which: number, fails: boolean) => {
    const { other, asked, payments } = world
    const ids = [...asked.map(({ id }) => id), ...payments.flatMap(listRequestIds)]
    const theirs = (other ? await readRefunds(other) : []).filter(({ id }) => !ids.includes(id))
    const one = pick(theirs, which)
    const payment = payments.find(({ id }) => id === one?.paymentId)
    if (!one || !payment || (payment.refundedAmountShown !== null && fails)) return undefined
    const unsent = sumUnsent(world, await readRefunds(world), payment.id)
    const wanted = [{ amount: countTaken(payment) }, { amount: unsent }, one]
    const fits = sum(wanted) <= Number(payment.amount)
    const failure = fails || !fits ? { failureCode: 5 } : {}
    const refund = await refundElsewhere(world, payment, Number(one.amount), {
      requestId: one.id,
      ...failure,
    })
    await deliverNotification(world, refund)
    return fails || !fits
      ? 'failed under an id of the other account'
      : 'refunded under an id of the other account'
  },
)

function listRequestIds({ refunds }: SandboxPayment): string[] {
  return refunds.map(({ requestId }) => requestId)
}

/**
 * The ledger shows from now on what it shows now. One exception, part of the same risk: not while it shows
 * a refund made elsewhere that was not notified. Its increase is matched to a notified refund that the ledger
 * does not show yet, whose amount is then no longer reserved.
 */
export const lag = defineStep<[of: number, on: boolean]>(
  'lag',
  { isPossible: ({ payments }, of, on) => on || pick(payments, of)?.refundedAmountShown !== null },
  async (world, of: number, on: boolean) => {
    const payment = pick(world.payments, of)
    if (!payment || (on && hasUnnotified(world, payment))) return undefined
    const lagged = payment.refundedAmountShown !== null
    payment.refundedAmountShown = on ? String(showsNow(world, payment)) : null
    if (on) return 'lagged'
    return lagged ? 'caught up' : undefined
  },
)

function hasUnnotified(world: World, { refunds }: SandboxPayment): boolean {
  return refunds.some(
    ({ requestId }) => world.portal.has(requestId) && !world.notified.has(requestId),
  )
}

/** The gateway tells a failure, with a code that is not final, of a refund whose money may still move. */
export const notifyUnclear = defineStep(
  'notifyUnclear',
  hasOpen,
  async (world, which: number, code: 5 | 24) => {
    const refund = pick(findOpen(world), which)
    if (!refund) return undefined
    await deliverNotification(world, refund, { code })
    return 'notified of an unclear failure'
  },
)

/** A notification of a refund of ours spells its request id in upper case. */
export const notifyUpper = defineStep('notifyUpper', hasSettled, async (world, which: number) => {
  const own = findSettled(world).filter(({ requestId }) => !world.portal.has(requestId))
  const refund = pick(own, which)
  if (!refund) return undefined
  await deliverNotification(world, refund, { upper: true })
  return 'notified in upper case'
})

/**
 * A notification that says the opposite of what happened, a failure with this code. The ledger does not lag: both cannot
 * be wrong at once.
 */
export const contradict = defineStep(
  'contradict',
  hasSettled,
  async (world, which: number, code: 1 | 5 = 5) => {
    const refund = pick(findSettled(world), which)
    if (!refund || refund.payment.refundedAmountShown !== null || world.pause) return undefined
    const { requestId, status } = refund
    const isFirst = !world.notified.has(requestId)
    world.lies.add(requestId)
    await deliverNotification(world, refund, { code: status === 'failed' ? 0 : code })
    await runPass(world, { ask: false })
    if (!world.portal.has(requestId)) return 'contradicted'
    return isFirst ? 'contradicted a portal refund before' : 'contradicted a portal refund after'
  },
)

/** The gateway no longer lists the payment, or lists it again. */
export const list = defineStep<[of: number, on: boolean]>(
  'list',
  { isPossible: ({ payments }, of, on) => pick(payments, of)?.listed !== on },
  async (world, of: number, on: boolean) => {
    const payment = pick(world.payments, of)
    if (!payment || payment.listed === on) return undefined
    payment.listed = on
    return on ? 'listed again' : 'not listed'
  },
)

/** The payment is charged back, or paid again after all. */
export const change = defineStep<[of: number, status: string]>(
  'change',
  { isPossible: ({ payments }, of, status) => pick(payments, of)?.status !== status },
  async (world, of: number, status: string) => {
    const payment = pick(world.payments, of)
    if (!payment || payment.status === status) return undefined
    payment.status = status
    return status === 'SUCCESS' ? 'paid again' : 'charged back'
  },
)

/**
 * One answer from a replica that lags far behind. While no refund was refused that may have been made, and no refund made
 * elsewhere is known to the ledger alone: no query can tell then.
 */
export const stale = defineStep('stale', hasSettled, async (world, of: number) => {
  const payment = pick(world.payments, of)
  const doubtful = world.deniedUntil.size > 0 || world.pause !== undefined
  if (!payment || doubtful || payment.refundedAmountShown !== null) return undefined
  if (hasUnnotified(world, payment)) return undefined
  payment.refundedAmountShown = '0'
  await runPass(world, { ask: true })
  payment.refundedAmountShown = null
  await runPass(world, { ask: true })
  return countTaken(payment) > 0 ? 'answered from the past' : undefined
})

/** The gateway forgets the request ids that the service may no longer rely on. */
export const forget = defineStep(
  'forget',
  { isPossible: ({ firstSends, restored, saved }) => firstSends.size > 0 && !restored && !saved },
  async (world) => {
    if (world.restored || world.saved) return undefined
    world.forgets = true
    let forgotten = false
    for (const [id, at] of world.firstSends) {
      if (world.clockMs - at < SCHEDULE.resendForMs) continue
      for (const { transaction } of world.payments) {
        forgotten = transaction.merchant.refunds.delete(id) || forgotten
      }
    }
    return forgotten ? 'forgot a request id' : undefined
  },
)
