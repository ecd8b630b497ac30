import { randomUUID } from 'node:crypto'
import fc from 'fast-check'
import { expect } from 'vitest'
import { Refund } from '../../../src/refunds/view.ts'
import { checkBooks, decide, readGatewayStatus, readRefunds, sumUnsent } from './checks.ts'
import type { SendFate } from './wire.ts'
import {
  countTaken,
  deliverNotification,
  findOpen,
  findSettled,
  refundElsewhere,
  runPass,
  SCHEDULE,
  settle,
  shiftTime,
  showsNow,
  sum,
  type World,
  wake,
} from './world.ts'

/** The invariants are checked against the real system, so the model only counts steps. */
export type Model = { steps: number }
export type Command = fc.AsyncCommand<Model, World>

const SENDABLE = ['pending', 'sending', 'unknown']
const OPEN = ['sending', 'accepted', 'unknown']

/** A step, with the invariants after it. */
function step(name: string, run: (world: World) => Promise<void>): Command {
  return {
    check: () => true,
    async run(model, world) {
      model.steps += 1
      await run(world)
      await checkBooks(world)
    },
    toString: () => name,
  }
}

function pick<T>(list: readonly T[], index: number): T | undefined {
  return list[index % Math.max(1, list.length)]
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
  if (last) expect(await ask(world, last)).toBe(last.id)
})

type RefundRequest = { paymentId: string; key: string; body: object }

function makeRequest(world: World, of: number, amount: number | undefined): RefundRequest {
  const paymentId = pick(world.payments, of)?.id ?? ''
  const body = amount === undefined ? {} : { amount: String(amount) }
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
    const open = ours.some((one) => one.paymentId === payment.id && OPEN.includes(one.status))
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
    const unnotified = payment.refunds.some(
      ({ requestId }) => world.portal.has(requestId) && !world.notified.has(requestId),
    )
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

function decideOne(which: number): Command {
  return step(`decide(${which})`, async (world) => {
    const open = (await readRefunds(world)).filter(({ status }) => status === 'needs_review')
    const refund = pick(open, which)
    if (refund) await decide(world, refund.id)
  })
}

const index = fc.nat(5)
const payment = fc.nat(1)
const amount = fc.constantFrom(10, 10, 20, 30, 60)

const times = fc.constantFrom(
  SCHEDULE.leaseMs,
  SCHEDULE.resendMs,
  SCHEDULE.resendMs,
  SCHEDULE.confirmMs,
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
  { kind: 'fault', fault: 'acceptThenCode', code: 33 },
  { kind: 'fault', fault: 'code', code: 33 },
  { kind: 'fault', fault: 'code', code: 99 },
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
]
