import { randomUUID } from 'node:crypto'
import { expect } from 'vitest'
import { Problem } from '../../../src/http/problems.ts'
import { Refund } from '../../../src/refunds/view.ts'
import type { StoredRefund } from '../../nightly/audit/ledgers.ts'
import { RECEIVER } from '../../support/ask.ts'
import { readRefunds, readUnmatched, sumUnsent } from './check.ts'
import { playMeanwhile } from './clock.ts'
import { isHeld } from './holds.ts'
import { defineStep, hasAsked, pick } from './step.ts'
import type { Moment } from './wire.ts'
import { type Asked, call, countTaken, note, sum, type World } from './world.ts'

type RefundRequest = Pick<Asked, 'paymentId' | 'key' | 'body'>

/** `of` picks the payment; no amount asks for all that is left. */
export const request = defineStep('request', {}, async (world, of: number, amount?: number) => {
  const one = makeRequest(world, of, amount)
  const id = await ask(world, one)
  if (id === undefined) return isHeld(world, one) ? 'refused while held' : 'refused a request'
  await expectRoom(world, one.paymentId)
  return 'requested'
})

/** Requests of the other account whose key and id this one does not know. */
function listOnlyTheirs({ other, asked, payments }: World): Asked[] {
  const known = payments.flatMap(({ refunds }) => refunds.map(({ requestId }) => requestId))
  return (other?.asked ?? []).filter(
    ({ key, id }) => !known.includes(id) && !asked.some((one) => one.key === key || one.id === id),
  )
}

/** Under the key of a refund of the other account, which may have given it the id that this one gets as well. */
export const requestSame = defineStep(
  'requestSame',
  { isPossible: (world: World) => listOnlyTheirs(world).length > 0 },
  async (world, which: number) => {
    const other = pick(listOnlyTheirs(world), which)
    if (!other) return undefined
    const renames = world.options.equalIds && !world.saved && !world.restored
    const { receiver: _, ...plain }: { receiver?: unknown } = other.body
    // A receiver is encrypted for the id under which it was stored.
    const id = await ask(world, { ...other, body: renames ? plain : other.body })
    if (id === undefined) return undefined
    expect(id, 'one id in two accounts').not.toBe(other.id)
    if (!renames) return 'requested under the same key'
    await rename(world, id, other.id)
    return 'requested with the same id'
  },
)

/** Gives a refund that was not sent yet another id, as if its row were from before ids were derived from keys. */
async function rename(world: World, from: string, to: string): Promise<void> {
  const { sql } = world
  const { merchantCode } = world.account
  await sql`
    with changed as (
      update changes set refund_id = ${to} where merchant_code = ${merchantCode} and refund_id = ${from}
    ), audited as (
      update audit_entries set object_id = ${to} where merchant_code = ${merchantCode} and object_id = ${from}
    )
    update refunds set refund_id = ${to} where merchant_code = ${merchantCode} and refund_id = ${from}`
  world.asked = world.asked.map((one) => (one.id === from ? { ...one, id: to } : one))
  world.renamed.add(to)
}

/** Several at once, which wait for each other in the database. */
export const requestTogether = defineStep(
  'requestTogether',
  {},
  async (world, of: number, amount: number) => {
    const requests = [0, 1, 2].map(() => makeRequest(world, of, amount))
    const granted = await Promise.all(requests.map((one) => ask(world, one)))
    if (granted.every((id) => id === undefined)) return undefined
    await expectRoom(world, requests[0]?.paymentId ?? '')
    return 'requested together'
  },
)

/** The same request again returns the same refund, whatever its status, also while it is held. */
export const repeatRequest = defineStep('repeatRequest', hasAsked, async (world) => {
  const last = world.asked.at(-1)
  if (!last) return undefined
  const id = await ask(world, last)
  // Of a row that was lost nothing may be left.
  if (!(world.restored && id === undefined)) expect(id).toBe(last.id)
  return 'repeated a request'
})

export function makeRequest({ payments }: World, of: number, amount?: number): RefundRequest {
  const body = { ...(amount === undefined ? {} : { amount: String(amount) }), receiver: RECEIVER }
  return { paymentId: pick(payments, of)?.id ?? '', key: randomUUID(), body }
}

/** @returns the refund's id, or undefined when it is refused: nothing is left, or the payment or account is held */
export async function ask(
  world: World,
  { paymentId, key, body }: RefundRequest,
): Promise<string | undefined> {
  const headers = { 'idempotency-key': key }
  const { status, answer } = await call(world, 'POST', `payments/${paymentId}/refunds`, {
    ...{ body, headers },
  })
  const isNew = !world.asked.some((one) => one.key === key)
  if (status === 409) {
    if (Problem.parse(answer).code === 'held') expect(isHeld(world, { paymentId })).toBe(true)
    return undefined
  }
  expect({ status, answer }).toMatchObject({ status: 202 })
  expect(isNew && isHeld(world, { paymentId }), 'requested while held').toBe(false)
  const { id } = Refund.parse(answer)
  if (isNew) world.asked.push({ id, paymentId, key, body, atMs: world.clockMs })
  return id
}

/** A refund of 10, or the one that waits, which is being sent soon; undefined if there is none. */
export async function findPending(world: World): Promise<StoredRefund | undefined> {
  const waiting = (await readRefunds(world)).find(({ status }) => status === 'pending')
  if (waiting) return waiting
  const asked = await ask(world, makeRequest(world, 0, 10))
  return (await readRefunds(world)).find(({ id, status }) => id === asked && status === 'pending')
}

/** A request is accepted only if there is room, as far as the service knows of refunds made elsewhere. */
async function expectRoom(world: World, paymentId: string): Promise<void> {
  if (world.restored || world.overdrawn.has(paymentId)) return
  const known = await world.sql<{ id: string }[]>`
    select request_id as id from external_refunds
    where merchant_code = ${world.account.merchantCode} and payment_id = ${paymentId}`
  const payment = world.payments.find(({ id }) => id === paymentId)
  if (!payment) throw new Error(`no payment ${paymentId}`)
  const elsewhere = payment.refunds.filter(
    ({ requestId, status }) => world.portal.has(requestId) && status !== 'failed',
  )
  if (!elsewhere.every(({ requestId }) => known.some(({ id }) => id === requestId))) return
  const unsent = sumUnsent(world, await readRefunds(world), paymentId)
  const taken = sum([{ amount: countTaken(payment) }, { amount: unsent }])
  const room = `room for another refund of ${payment.amount}`
  expect(taken, room).toBeLessThanOrEqual(Number(payment.amount))
  note(world, 'checked that there was room')
}

const UNSENT = ['awaiting_approval', 'pending']

/** @returns the code of the refusal, or undefined when the refund is cancelled */
async function postCancellation(world: World, id: string): Promise<string | undefined> {
  const body = { reason: 'the customer keeps the goods' }
  const { status, answer } = await call(world, 'POST', `refunds/${id}/cancellation`, { body })
  if (status !== 200) {
    expect(status).toBe(409)
    const { code } = Problem.parse(answer)
    expect(['already_sent', 'not_cancellable', 'growth_may_be_its_own']).toContain(code)
    return code
  }
  world.cancelled.add(id)
  // Nothing keeps the amount of a refund reserved of whose sending nothing is left.
  const asked = world.asked.find((one) => one.id === id)
  if (asked && (world.lostSends.get(id) ?? 0) > 0) world.overdrawn.add(asked.paymentId)
  return undefined
}

/** Whether the newest answer shows as much growth that no known refund explains. */
export async function mayBeItsOwn(
  world: World,
  { paymentId, amount }: Pick<StoredRefund, 'paymentId' | 'amount'>,
): Promise<boolean> {
  return ((await readUnmatched(world)).get(paymentId) ?? 0) >= Number(amount)
}

/** A refund that was never sent is cancelled, and any other is not. */
export const cancel = defineStep(
  'cancel',
  hasAsked,
  async (world, which: number, openOnly: boolean) => {
    const shown = await readRefunds(world)
    const open = shown.filter(({ status }) => !openOnly || UNSENT.includes(status))
    const refund = pick(open, which)
    if (!refund) return undefined
    const isItsOwn = await mayBeItsOwn(world, refund)
    const refused = await postCancellation(world, refund.id)
    const isUnsent = UNSENT.includes(refund.status) && world.pause?.refundId !== refund.id
    // Of one that was lost something may be known that its row does not say yet.
    if (!world.restored) expect(refused === undefined).toBe(isUnsent && !isItsOwn)
    if (refused === undefined || refused === 'growth_may_be_its_own') {
      expect(isItsOwn, `${refused ?? 'cancelled'} with this growth`).toBe(refused !== undefined)
    }
    if (refused !== undefined) return `refused to cancel: ${refused}`
    return refund.status === 'pending' ? 'cancelled' : 'cancelled before it was approved'
  },
)

/** A refund is cancelled while it is being sent. Either the cancellation or the attempt is recorded first. */
export const cancelDuring = defineStep('cancelDuring', {}, async (world, at: Moment) => {
  const one = await findPending(world)
  if (!one) return undefined
  let refused: string | undefined
  const begun = await playMeanwhile(world, at, async (refundId) => {
    refused = await postCancellation(world, refundId ?? one.id)
  })
  if (!begun) return undefined
  const isGrowth = refused === 'growth_may_be_its_own'
  if (at === 'answered' && !world.restored && !isGrowth) expect(refused).toBeUndefined()
  if (at === 'leaving') expect(refused).toBe('already_sent')
  if (at === 'answered') return refused === undefined ? 'cancelled while answered' : undefined
  return refused === undefined ? undefined : `refused to cancel while ${at}`
})

/** The merchant repeats the cancellations that were lost; what is known of a refund by then may refuse them. */
export async function repeatCancellations(world: World, ids: Iterable<string>): Promise<void> {
  const found = await readRefunds(world)
  for (const id of ids) if (found.some((one) => one.id === id)) await postCancellation(world, id)
}
