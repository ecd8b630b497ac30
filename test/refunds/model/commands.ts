import { randomUUID } from 'node:crypto'
import fc from 'fast-check'
import { expect } from 'vitest'
import { Refund } from '../../../src/refunds/view.ts'
import type { SandboxPayment } from '../../../src/sandbox/state.ts'
import { RECEIVER } from '../../support/ask.ts'
import { postIpn, signIpn } from '../../support/service.ts'
import { changeKey, decideApproval, expire, reseal } from './approvals.ts'
import type { ShownRefund } from './auditor.ts'
import { decide, readGatewayStatus, readRefunds, sumUnsent } from './checks.ts'
import { decisionCommands } from './decisions.ts'
import { restoreRows, saveRows } from './lost-commits.ts'
import { type Command, pick, step } from './step.ts'
import type { SendFate } from './wire.ts'
import {
  countTaken,
  deliverNotification,
  findOpen,
  findSettled,
  OTHER,
  refundElsewhere,
  runPass,
  SCHEDULE,
  settle,
  shiftRows,
  shiftTime,
  showsNow,
  sum,
  type World,
  wake,
} from './world.ts'

const SENDABLE = ['awaiting_approval', 'pending', 'sending', 'unknown']
const OPEN = ['sending', 'accepted', 'unknown']

/** Whether growth of its amount is taken for this refund. */
function mayBeInferred({ status, review }: ShownRefund): boolean {
  return OPEN.includes(status) || (status === 'needs_review' && review === 'no_evidence')
}

/** `of` picks the payment; no amount asks for all that is left. */
function request(of: number, amount: number | undefined): Command {
  return step(`request(${of}, ${amount})`, async (world) => {
    const one = makeRequest(world, of, amount)
    if (await ask(world, one)) await expectRoom(world, one.paymentId)
  })
}

/** Several at once, which wait for each other in the database. */
function requestTogether(of: number, amount: number): Command {
  return step(`requestTogether(${of}, ${amount})`, async (world) => {
    const requests = [0, 1, 2].map(() => makeRequest(world, of, amount))
    const granted = await Promise.all(requests.map((one) => ask(world, one)))
    const [one] = requests
    if (one && granted.some((id) => id !== undefined)) await expectRoom(world, one.paymentId)
  })
}

/** The same request again returns the same refund, whatever its status. */
const repeatRequest = step('repeatRequest()', async (world) => {
  const last = world.asked.at(-1)
  if (!last) return
  const id = await ask(world, last)
  // Of a row that was lost nothing may be left.
  if (!(world.restored && id === undefined)) expect(id).toBe(last.id)
})

type RefundRequest = { paymentId: string; key: string; body: object }

function makeRequest(world: World, of: number, amount: number | undefined): RefundRequest {
  const paymentId = pick(world.payments, of)?.id ?? ''
  const body =
    amount === undefined ? { receiver: RECEIVER } : { amount: String(amount), receiver: RECEIVER }
  return { paymentId, key: randomUUID(), body }
}

/** @returns the refund's id, or undefined when nothing was left */
async function ask(
  world: World,
  { paymentId, key, body }: RefundRequest,
): Promise<string | undefined> {
  const response = await world.rig.api(`/v1/payments/${paymentId}/refunds`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'idempotency-key': key },
    body: JSON.stringify(body),
  })
  const answer: unknown = await response.json()
  if (response.status === 409) return undefined
  expect({ status: response.status, answer }).toMatchObject({ status: 202 })
  const { id } = Refund.parse(answer)
  if (!world.asked.some((one) => one.id === id)) world.asked.push({ id, paymentId, key, body })
  return id
}

/** A request is accepted only if there is room, as far as the service knows of refunds made elsewhere. */
async function expectRoom(world: World, paymentId: string): Promise<void> {
  if (world.restored || world.overdrawn || world.lies.size > 0) return
  const known = await world.rig.database.sql<{ id: string }[]>`
    select request_id as id from foreign_refunds where payment_id = ${paymentId}`
  const payment = world.payments.find(({ id }) => id === paymentId)
  if (!payment) throw new Error(`no payment ${paymentId}`)
  const elsewhere = payment.refunds.filter(({ requestId }) => world.portal.has(requestId))
  if (!elsewhere.every(({ requestId }) => known.some(({ id }) => id === requestId))) return
  const unsent = sumUnsent(world, await readRefunds(world), paymentId, SENDABLE)
  const room = `room for another refund of ${payment.amount}`
  expect(sum([{ amount: countTaken(payment) }, { amount: unsent }]), room).toBeLessThanOrEqual(
    Number(payment.amount),
  )
}

/** Syncs until nothing is due; the first REFUND sent, if any, meets this fate. */
function send(fate: SendFate): Command {
  return step(`send(${JSON.stringify(fate)})`, async (world) => {
    if (world.pause) await wake(world)
    world.wire.fate = fate
    await runPass(world, { ask: false })
    world.wire.fate = { kind: 'through' }
  })
}

/** Requests a query, which may fail in its own ways. */
function query(fault: 'none' | 'reset' | 'code' | 'pause'): Command {
  return step(`query(${fault})`, async (world) => {
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
  })
}

const wakeUp = step('wake()', wake)

function settleOne(which: number, failureCode: number | undefined): Command {
  return step(`settle(${which}, ${failureCode})`, async (world) => {
    const refund = pick(findOpen(world), which)
    if (refund) await settle(world, refund, failureCode)
  })
}

/** A notification of a settled refund, for the first time or again. */
function notify(which: number, copies: number): Command {
  return step(`notify(${which}, ${copies})`, async (world) => {
    const refund = pick(findSettled(world), which)
    for (let copy = 0; refund && copy < copies; copy += 1) await deliverNotification(world, refund)
  })
}

/** A notification that the refund is still in progress. */
function notifyOpen(which: number): Command {
  return step(`notifyOpen(${which})`, async (world) => {
    const refund = pick(findOpen(world), which)
    if (refund) await deliverNotification(world, refund, 99)
  })
}

/**
 * A refund made elsewhere, within what the gateway has left. Two exceptions, both documented as the
 * remaining risk: while the service cannot know of it (the ledger lags, its notification is late, or a
 * process that has queried sleeps before it sends) it leaves alone what the service has reserved; and one whose
 * notification is late, while one of ours is open, has an amount (a fraction) that cannot be taken for ours.
 */
function refundInPortal(of: number, amount: number, late: boolean): Command {
  return step(`refundInPortal(${of}, ${amount}, ${late})`, async (world) => {
    const payment = pick(world.payments, of)
    if (!payment) return
    const lags = payment.refundedAmountShown !== null
    const hidden = lags || late || world.pause !== undefined
    const ours = await readRefunds(world)
    const unsent = hidden ? sumUnsent(world, ours, payment.id, SENDABLE) : 0
    const open = ours.some((one) => one.paymentId === payment.id && mayBeInferred(one))
    const odd = late && !lags && (open || world.pause !== undefined)
    const portion = odd ? amount + 2 ** world.portal.size / 10_000 : amount
    const wanted = sum([{ amount: countTaken(payment) }, { amount: unsent }, { amount: portion }])
    if (wanted > Number(payment.amount)) return
    const refund = await refundElsewhere(world, payment, portion)
    if (!late || lags) await deliverNotification(world, refund)
  })
}

/**
 * The ledger shows from now on what it shows now. One exception, part of the same risk: not while it shows
 * a refund made elsewhere that was not notified. Its increase is matched to a notified refund that the ledger
 * does not show yet, whose amount is then no longer reserved.
 */
function lag(of: number, on: boolean): Command {
  return step(`lag(${of}, ${on})`, async (world) => {
    const payment = pick(world.payments, of)
    if (!payment) return
    const unnotified = hasUnnotified(world, payment)
    if (!on) payment.refundedAmountShown = null
    else if (!unnotified) payment.refundedAmountShown = String(showsNow(world, payment))
  })
}

/**
 * Time passes, and with `works` a sync follows. One exception, the meaning of the confirm window: a gateway that
 * refuses a refund by its answer and makes it all the same shows so before the window is over. A sleeping process has lost its
 * lease to another worker; it does not sleep for days.
 */
function pass(ms: number, works: boolean): Command {
  return step(`pass(${ms}, ${works})`, async (world) => {
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
    if (world.pause || works) await runPass(world, { ask: false })
  })
}

function hasUnnotified(world: World, { refunds }: SandboxPayment): boolean {
  return refunds.some(
    ({ requestId }) => world.portal.has(requestId) && !world.notified.has(requestId),
  )
}

/** A notification that says the opposite of what happened. The ledger does not lag: both cannot be wrong at once. */
function contradict(which: number): Command {
  return step(`contradict(${which})`, async (world) => {
    const refund = pick(findSettled(world), which)
    if (!refund || refund.payment.refundedAmountShown !== null || world.pause) return
    world.lies.add(refund.requestId)
    await deliverNotification(world, refund, refund.status === 'failed' ? 0 : 5)
    await runPass(world, { ask: false })
  })
}

/** The gateway no longer lists the payment, or lists it again. */
function list(of: number, on: boolean): Command {
  return step(`list(${of}, ${on})`, async (world) => {
    const payment = pick(world.payments, of)
    if (payment) payment.listed = on
  })
}

/** The payment is charged back, or paid again after all. */
function change(of: number, status: string): Command {
  return step(`change(${of}, ${status})`, async (world) => {
    const payment = pick(world.payments, of)
    if (payment) payment.status = status
  })
}

/**
 * One answer from a replica that lags far behind. While nothing is refused or lied about, and no refund made elsewhere
 * is known to the ledger alone: no query can tell then.
 */
function stale(of: number): Command {
  return step(`stale(${of})`, async (world) => {
    const payment = pick(world.payments, of)
    const doubtful = world.deniedUntil.size + world.lies.size > 0 || world.pause !== undefined
    if (!payment || doubtful || payment.refundedAmountShown !== null) return
    if (hasUnnotified(world, payment)) return
    payment.refundedAmountShown = '0'
    await runPass(world, { ask: true })
    payment.refundedAmountShown = null
    await runPass(world, { ask: true })
  })
}

/** The gateway forgets the request ids that the service may no longer rely on. */
const forget = step('forget()', async (world) => {
  if (world.restored || world.saved) return
  world.forgets = true
  for (const [id, at] of world.firstSends) {
    if (world.clockMs - at < SCHEDULE.resendForMs) continue
    for (const { transaction } of world.payments) transaction.merchant.refunds.delete(id)
  }
})

const save = step('save()', async (world) => {
  if (!world.pause && !world.forgets && world.dedupes) world.saved = await saveRows(world)
})

/** The commits since `save` are lost. The clients repeat their requests, and the gateway its notifications. */
function loseCommits(notifiedFirst: boolean): Command {
  return step(`loseCommits(${notifiedFirst})`, async (world) => {
    if (world.pause) await wake(world)
    const { saved } = world
    if (!saved) return
    world.saved = undefined
    world.restored = true
    await restoreRows(world, saved)
    await shiftRows(world, world.clockMs - saved.clockMs)
    const notifyAgain = async () => {
      const notified = findSettled(world).filter(({ requestId }) => world.notified.has(requestId))
      for (const refund of notified) await deliverNotification(world, refund)
    }
    if (notifiedFirst) await notifyAgain()
    for (const one of [...world.asked]) {
      if ((await ask(world, one)) === undefined) world.overdrawn = true
    }
    if (!notifiedFirst) await notifyAgain()
  })
}

/** Another account of the gateway signs a notification of our refund: it is stored, and says nothing of ours. */
function notifyFromOther(which: number, code: number): Command {
  return step(`notifyFromOther(${which}, ${code})`, async (world) => {
    const refund = pick([...findOpen(world), ...findSettled(world)], which)
    if (!refund) return
    const { requestId, payment, amount } = refund
    const answer = await postIpn(
      world.rig.service.url,
      signIpn(
        {
          svc_MerchantCode: OTHER.merchantCode,
          svc_Command: 'REFUND',
          svc_PaymentID: payment.id,
          svc_RequestID: requestId,
          svc_TransactionID: `R-${requestId.slice(0, 8)}`,
          svc_Amount: Number(amount),
          svc_ResponseCode: code,
        },
        { secret: OTHER.secret, exclude: [] },
      ),
    )
    expect(answer.status).toBe(200)
  })
}

function decideOne(which: number): Command {
  return step(`decide(${which})`, async (world) => {
    const open = (await readRefunds(world)).filter(({ status }) => status === 'needs_review')
    const refund = pick(open, which)
    if (refund) await decide(world, refund.id)
  })
}

function decideApprovalOf(which: number, ...how: ApprovalStep): Command {
  return step(`decideApprovalOf(${[which, ...how]})`, (world) =>
    decideApproval(world, which, ...how),
  )
}

type ApprovalStep = readonly ['approval' | 'decline', 'another' | 'same']

const index = fc.nat(5)
const payment = fc.nat(1)
const amount = fc.constantFrom(10, 10, 20, 30, 60)

const times = fc.constantFrom(
  SCHEDULE.leaseMs,
  SCHEDULE.resendMs,
  SCHEDULE.resendMs,
  SCHEDULE.missingMs,
  SCHEDULE.confirmMs,
  SCHEDULE.resendForMs,
  SCHEDULE.resolveMs,
)

const fates: readonly SendFate[] = [
  { kind: 'unreachable' },
  { kind: 'dieBefore' },
  { kind: 'dieAfter' },
  { kind: 'pauseBefore' },
  { kind: 'pauseAfter' },
  { kind: 'hang' },
  { kind: 'early' },
  { kind: 'fault', fault: 'reset' },
  { kind: 'fault', fault: 'http500' },
  { kind: 'fault', fault: 'garbage' },
  { kind: 'fault', fault: 'truncate' },
  { kind: 'fault', fault: 'acceptThenReset' },
  ...[1, 5, 9, 24, 33, 37, 99, 215].flatMap((code) => [
    { kind: 'fault' as const, fault: 'acceptThenCode' as const, code },
    { kind: 'fault' as const, fault: 'code' as const, code },
  ]),
]

export const commands: fc.Arbitrary<Command>[] = [
  fc.tuple(payment, fc.option(amount, { nil: undefined })).map((of) => request(...of)),
  fc.tuple(payment, amount).map((of) => request(...of)),
  fc.tuple(payment, amount).map((of) => requestTogether(...of)),
  fc.constant(repeatRequest),
  fc.constant(send({ kind: 'through' })),
  fc.constantFrom(...fates).map(send),
  fc.constantFrom(...fates).map(send),
  fc
    .constantFrom(
      'none' as const,
      'none' as const,
      'reset' as const,
      'code' as const,
      'pause' as const,
    )
    .map(query),
  fc.constant(query('none')),
  fc.constant(wakeUp),
  index.map((which) => settleOne(which, undefined)),
  fc.tuple(index, fc.constantFrom(undefined, 1)).map(([which, code]) => settleOne(which, code)),
  fc.tuple(index, fc.constantFrom(1, 1, 2)).map((of) => notify(...of)),
  index.map(notifyOpen),
  fc.tuple(payment, amount, fc.boolean()).map((of) => refundInPortal(...of)),
  fc.tuple(payment, fc.boolean()).map((of) => lag(...of)),
  fc.tuple(times, fc.boolean()).map((of) => pass(...of)),
  fc.tuple(times, fc.constant(true)).map((of) => pass(...of)),
  index.map(decideOne),
  index.map(contradict),
  fc.tuple(payment, fc.boolean()).map((of) => list(...of)),
  fc
    .tuple(payment, fc.constantFrom('SUCCESS', 'SUCCESS', 'FAILED', 'PROCESSING'))
    .map((of) => change(...of)),
  payment.map(stale),
  fc.constant(forget),
  fc.constant(save),
  fc.boolean().map(loseCommits),
  fc.tuple(index, fc.constantFrom(0, 5)).map((of) => notifyFromOther(...of)),
  ...decisionCommands,
  index.map((which) => decideApprovalOf(which, 'approval', 'another')),
  fc
    .tuple(index, fc.constantFrom<ApprovalStep>(['decline', 'another'], ['approval', 'same']))
    .map(([which, how]) => decideApprovalOf(which, ...how)),
  fc.constant(step('expire()', expire)),
  fc.constantFrom(step('changeKey()', changeKey), step('reseal()', reseal)),
]
