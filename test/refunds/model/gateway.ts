import type { SandboxPayment } from '../../../src/sandbox/state.ts'
import type { ShownRefund } from './auditor.ts'
import { readRefunds, sumUnsent } from './checks.ts'
import { hasAsked, hasOpen, hasSettled, pick, type Step, step } from './step.ts'
import {
  countTaken,
  deliverNotification,
  findOpen,
  findSettled,
  refundElsewhere,
  runPass,
  SCHEDULE,
  settle,
  showsNow,
  sum,
  type World,
} from './world.ts'

const SENDABLE = ['awaiting_approval', 'pending', 'sending', 'unknown']
const OPEN = ['sending', 'accepted', 'unknown']

export function settleOne(which: number, failureCode: number | undefined): Step {
  return step(
    'settleOne',
    [which, failureCode],
    async (world) => {
      const refund = pick(findOpen(world), which)
      if (!refund) return undefined
      await settle(world, refund, failureCode)
      return failureCode === undefined ? 'settled' : 'settled as failed'
    },
    hasOpen,
  )
}

/** A notification of a settled refund, for the first time or again. */
export function notify(which: number, copies: number): Step {
  return step(
    'notify',
    [which, copies],
    async (world) => {
      const refund = pick(findSettled(world), which)
      if (!refund) return undefined
      const isFirst = !world.notified.has(refund.requestId)
      for (let copy = 0; copy < copies; copy += 1) await deliverNotification(world, refund)
      return isFirst ? 'notified' : 'notified again'
    },
    hasSettled,
  )
}

/** A notification that the refund is still in progress. */
export function notifyOpen(which: number): Step {
  return step(
    'notifyOpen',
    [which],
    async (world) => {
      const refund = pick(findOpen(world), which)
      if (!refund) return undefined
      await deliverNotification(world, refund, 99)
      return 'notified of progress'
    },
    hasOpen,
  )
}

/** Whether growth of its amount is taken for this refund. */
function mayBeInferred({ status, review }: ShownRefund): boolean {
  return OPEN.includes(status) || (status === 'needs_review' && review === 'no_evidence')
}

/**
 * A refund made elsewhere, within what the gateway has left. Two exceptions, both documented as the
 * remaining risk: while the service cannot know of it (the ledger lags, its notification is late, or a
 * process that has queried sleeps before it sends) it leaves alone what the service has reserved; and one whose
 * notification is late, while one of ours is open, has an amount (a fraction) that cannot be taken for ours.
 */
export function refundInPortal(of: number, amount: number, late: boolean): Step {
  return step('refundInPortal', [of, amount, late], async (world) => {
    const payment = pick(world.payments, of)
    if (!payment) return undefined
    const lags = payment.refundedAmountShown !== null
    const hidden = lags || late || world.pause !== undefined
    const ours = await readRefunds(world)
    const unsent = hidden ? sumUnsent(world, ours, payment.id, SENDABLE) : 0
    const open = ours.some((one) => one.paymentId === payment.id && mayBeInferred(one))
    const odd = late && !lags && (open || world.pause !== undefined)
    const portion = odd ? amount + 2 ** world.portal.size / 10_000 : amount
    const wanted = sum([{ amount: countTaken(payment) }, { amount: unsent }, { amount: portion }])
    if (wanted > Number(payment.amount)) return undefined
    const refund = await refundElsewhere(world, payment, portion)
    if (late && !lags) return 'refunded elsewhere, notified late'
    await deliverNotification(world, refund)
    return 'refunded elsewhere'
  })
}

/**
 * A refund made elsewhere that has the request id, payment and amount of a refund of the other account. It is notified at
 * once: as a success if it is within what is left, or else as a failure.
 */
export function refundWithTheirId(which: number, fails: boolean): Step {
  return step(
    'refundWithTheirId',
    [which, fails],
    async (world) => {
      const { other, asked, payments } = world
      const ids = [...asked.map(({ id }) => id), ...payments.flatMap(listRequestIds)]
      const theirs = (other ? await readRefunds(other) : []).filter(({ id }) => !ids.includes(id))
      const one = pick(theirs, which)
      const payment = payments.find(({ id }) => id === one?.paymentId)
      if (!one || !payment || (payment.refundedAmountShown !== null && fails)) return undefined
      const unsent = sumUnsent(world, await readRefunds(world), payment.id, SENDABLE)
      const wanted = [{ amount: countTaken(payment) }, { amount: unsent }, one]
      const fits = sum(wanted) <= Number(payment.amount)
      const failure = fails || !fits ? { failureCode: 5 } : {}
      const refund = await refundElsewhere(world, payment, one.amount, {
        requestId: one.id,
        ...failure,
      })
      await deliverNotification(world, refund)
      return fails || !fits
        ? 'failed under an id of the other account'
        : 'refunded under an id of the other account'
    },
    ({ other }) => other !== undefined && hasAsked(other),
  )
}

function listRequestIds({ refunds }: SandboxPayment): string[] {
  return refunds.map(({ requestId }) => requestId)
}

/**
 * The ledger shows from now on what it shows now. One exception, part of the same risk: not while it shows
 * a refund made elsewhere that was not notified. Its increase is matched to a notified refund that the ledger
 * does not show yet, whose amount is then no longer reserved.
 */
export function lag(of: number, on: boolean): Step {
  return step(
    'lag',
    [of, on],
    async (world) => {
      const payment = pick(world.payments, of)
      if (!payment || (on && hasUnnotified(world, payment))) return undefined
      const lagged = payment.refundedAmountShown !== null
      payment.refundedAmountShown = on ? String(showsNow(world, payment)) : null
      if (on) return 'lagged'
      return lagged ? 'caught up' : undefined
    },
    ({ payments }) => on || pick(payments, of)?.refundedAmountShown !== null,
  )
}

function hasUnnotified(world: World, { refunds }: SandboxPayment): boolean {
  return refunds.some(
    ({ requestId }) => world.portal.has(requestId) && !world.notified.has(requestId),
  )
}

/** A notification that says the opposite of what happened. The ledger does not lag: both cannot be wrong at once. */
export function contradict(which: number): Step {
  return step(
    'contradict',
    [which],
    async (world) => {
      const refund = pick(findSettled(world), which)
      if (!refund || refund.payment.refundedAmountShown !== null || world.pause) return undefined
      world.lies.add(refund.requestId)
      await deliverNotification(world, refund, refund.status === 'failed' ? 0 : 5)
      await runPass(world, { ask: false })
      return 'contradicted'
    },
    hasSettled,
  )
}

/** The gateway no longer lists the payment, or lists it again. */
export function list(of: number, on: boolean): Step {
  return step(
    'list',
    [of, on],
    async (world) => {
      const payment = pick(world.payments, of)
      if (!payment || payment.listed === on) return undefined
      payment.listed = on
      return on ? 'listed again' : 'not listed'
    },
    ({ payments }) => pick(payments, of)?.listed !== on,
  )
}

/** The payment is charged back, or paid again after all. */
export function change(of: number, status: string): Step {
  return step(
    'change',
    [of, status],
    async (world) => {
      const payment = pick(world.payments, of)
      if (!payment || payment.status === status) return undefined
      payment.status = status
      return status === 'SUCCESS' ? 'paid again' : 'charged back'
    },
    ({ payments }) => pick(payments, of)?.status !== status,
  )
}

/**
 * One answer from a replica that lags far behind. While nothing is refused or lied about, and no refund made elsewhere
 * is known to the ledger alone: no query can tell then.
 */
export function stale(of: number): Step {
  return step(
    'stale',
    [of],
    async (world) => {
      const payment = pick(world.payments, of)
      const doubtful = world.deniedUntil.size + world.lies.size > 0 || world.pause !== undefined
      if (!payment || doubtful || payment.refundedAmountShown !== null) return undefined
      if (hasUnnotified(world, payment)) return undefined
      payment.refundedAmountShown = '0'
      await runPass(world, { ask: true })
      payment.refundedAmountShown = null
      await runPass(world, { ask: true })
      return countTaken(payment) > 0 ? 'answered from the past' : undefined
    },
    hasSettled,
  )
}

/** The gateway forgets the request ids that the service may no longer rely on. */
export function forget(): Step {
  return step(
    'forget',
    [],
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
    ({ firstSends, restored, saved }) => firstSends.size > 0 && !restored && !saved,
  )
}
