import { randomUUID } from 'node:crypto'
import { expect } from 'vitest'
import { Problem } from '../../../src/http/problems.ts'
import { Refund } from '../../../src/refunds/view.ts'
import { RECEIVER } from '../../support/ask.ts'
import { isHeld } from './holds.ts'
import { readRefunds, sumUnsent } from './read-ledgers.ts'
import { defineStep, hasAsked, pick } from './step.ts'
import { type Asked, countTaken, inAccountOf, note, sum, type World } from './world.ts'

const SENDABLE = ['awaiting_approval', 'pending', 'sending', 'unknown']

type RefundRequest = Pick<Asked, 'paymentId' | 'key' | 'body'>

/** `of` picks the payment; no amount asks for all that is left. */
export const request = defineStep(
  'request',
  async (world, of: number, amount: number | undefined) => {
    const one = makeRequest(world, of, amount)
    const id = await ask(world, one)
    if (id === undefined) return isHeld(world, one) ? 'refused while held' : 'refused a request'
    await expectRoom(world, one.paymentId)
    return 'requested'
  },
)

/** Under the key of a refund of the other account, which may have given it the id that this one gets as well. */
export const requestSame = defineStep(
  'requestSame',
  async (world, which: number) => {
    const other = pick(listOnlyTheirs(world), which)
    if (!other) return undefined
    const renames = world.equalIds && !world.saved && !world.restored
    // A receiver is encrypted for the id under which it was stored.
    const body = renames ? withoutReceiver(other.body) : other.body
    const id = await ask(world, { ...other, body })
    if (id === undefined) return undefined
    expect(id, 'one id in two accounts').not.toBe(other.id)
    if (!renames) return 'requested under the same key'
    await rename(world, id, other.id)
    return 'requested with the same id'
  },
  { isPossible: (world) => listOnlyTheirs(world).length > 0 },
)

function withoutReceiver(body: object): object {
  return 'amount' in body ? { amount: body.amount } : {}
}

/** Requests of the other account whose key and id this one does not know. */
function listOnlyTheirs({ other, asked, payments }: World): Asked[] {
  const known = payments.flatMap(({ refunds }) => refunds.map(({ requestId }) => requestId))
  return (other?.asked ?? []).filter(
    ({ key, id }) => !known.includes(id) && !asked.some((one) => one.key === key || one.id === id),
  )
}

/** Gives a refund that was not sent yet another id, as if its row were from before ids were derived from keys. */
async function rename(world: World, from: string, to: string): Promise<void> {
  const { merchantCode } = world.account
  const { sql } = world.rig.database
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
  async (world, of: number, amount: number) => {
    const requests = [0, 1, 2].map(() => makeRequest(world, of, amount))
    const granted = await Promise.all(requests.map((one) => ask(world, one)))
    const [one] = requests
    if (!one || granted.every((id) => id === undefined)) return undefined
    await expectRoom(world, one.paymentId)
    return 'requested together'
  },
)

/** The same request again returns the same refund, whatever its status, also while it is held. */
export const repeatRequest = defineStep(
  'repeatRequest',
  async (world) => {
    const last = world.asked.at(-1)
    if (!last) return undefined
    const id = await ask(world, last)
    // Of a row that was lost nothing may be left.
    if (!(world.restored && id === undefined)) expect(id).toBe(last.id)
    return 'repeated a request'
  },
  { isPossible: hasAsked },
)

export function makeRequest(world: World, of: number, amount: number | undefined): RefundRequest {
  const paymentId = pick(world.payments, of)?.id ?? ''
  const body =
    amount === undefined ? { receiver: RECEIVER } : { amount: String(amount), receiver: RECEIVER }
  return { paymentId, key: randomUUID(), body }
}

/** @returns the refund's id, or undefined when it is refused: nothing is left, or the payment or account is held */
export async function ask(
  world: World,
  { paymentId, key, body }: RefundRequest,
): Promise<string | undefined> {
  const response = await world.rig.api(`/v1/payments/${paymentId}/refunds?${inAccountOf(world)}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'idempotency-key': key },
    body: JSON.stringify(body),
  })
  const answer: unknown = await response.json()
  const isNew = !world.asked.some((one) => one.key === key)
  if (response.status === 409) {
    if (Problem.parse(answer).code === 'held') expect(isHeld(world, { paymentId })).toBe(true)
    return undefined
  }
  expect({ status: response.status, answer }).toMatchObject({ status: 202 })
  expect(isNew && isHeld(world, { paymentId }), 'requested while held').toBe(false)
  const { id } = Refund.parse(answer)
  if (isNew) world.asked.push({ id, paymentId, key, body, atMs: world.clockMs })
  return id
}

/** A request is accepted only if there is room, as far as the service knows of refunds made elsewhere. */
async function expectRoom(world: World, paymentId: string): Promise<void> {
  if (world.restored || world.overdrawn.has(paymentId)) return
  const known = await world.rig.database.sql<{ id: string }[]>`
    select request_id as id from external_refunds
    where merchant_code = ${world.account.merchantCode} and payment_id = ${paymentId}`
  const payment = world.payments.find(({ id }) => id === paymentId)
  if (!payment) throw new Error(`no payment ${paymentId}`)
  const elsewhere = payment.refunds.filter(
    ({ requestId, status }) => world.portal.has(requestId) && status !== 'failed',
  )
  if (!elsewhere.every(({ requestId }) => known.some(({ id }) => id === requestId))) return
  const unsent = sumUnsent(world, await readRefunds(world), paymentId, SENDABLE)
  const room = `room for another refund of ${payment.amount}`
  expect(sum([{ amount: countTaken(payment) }, { amount: unsent }]), room).toBeLessThanOrEqual(
    Number(payment.amount),
  )
  note(world, 'checked that there was room')
}
