import { expect } from 'vitest'
import {
  countTaken,
  findOpen,
  findSettled,
  runPass,
  SCHEDULE,
  settle,
  shiftTime,
  showsNow,
  sum,
  tell,
  type World,
  wake,
} from './model-world.ts'

type RefundBook = {
  id: string
  paymentId: string
  amount: string
  status: string
  matched: boolean
  inferred: boolean
  due: boolean
}

type PaymentBook = { paymentId: string; atFirst: string; now: string; foreign: string }

/** Where a refund stands at the gateway: `none` when it never got there. */
export function standAtGateway({ payments }: World, id: string) {
  const all = payments.flatMap(({ refunds }) => refunds)
  const [first, ...others] = all.filter(({ requestId }) => requestId === id)
  expect(others, 'the gateway took one request id twice').toEqual([])
  return first?.status ?? 'none'
}

export async function readRefunds({ rig, transactionId }: World): Promise<RefundBook[]> {
  return await rig.database.sql<RefundBook[]>`
    select refund_id as id, payment_id as "paymentId", amount, status, matched, inferred,
      due_at is not null as due
    from refunds where transaction_id = ${transactionId} order by requested_at`
}

async function readPayments({ rig, transactionId }: World): Promise<PaymentBook[]> {
  return await rig.database.sql<PaymentBook[]>`
    select p.payment_id as "paymentId", p.refunded_at_first as "atFirst", p.refunded_amount as now,
      (select coalesce(sum(f.amount), 0) from foreign_refunds f
        where f.payment_id = p.payment_id and f.matched) as foreign
    from payments p where p.transaction_id = ${transactionId}`
}

/** What must hold after every step, whatever happened. */
export async function checkBooks(world: World): Promise<void> {
  for (const payment of world.payments) {
    const { id, amount, refunds } = payment
    expect(countTaken(payment), `moved or moving of ${amount}`).toBeLessThanOrEqual(Number(amount))
    for (const { requestId } of refunds) {
      const ours = world.asked.some((one) => one.id === requestId)
      expect(ours || world.portal.has(requestId), 'nobody asked for a refund').toBe(true)
    }
    world.highest.set(id, Math.max(world.highest.get(id) ?? 0, showsNow(world, payment)))
  }
  const refunds = await readRefunds(world)
  for (const { id, status, due, inferred } of refunds) {
    const stands = standAtGateway(world, id)
    if (status === 'failed') {
      expect(['none', 'failed'], 'failed, and its money moves').toContain(stands)
      expect(world.pause?.refundId, 'failed, and its bytes may still leave').not.toBe(id)
    }
    if (status === 'succeeded' && !(inferred && world.countsUnsettled)) {
      expect(stands, 'succeeded, and its money did not move').toBe('succeeded')
    }
    if (['pending', 'sending', 'accepted', 'unknown'].includes(status)) {
      expect(due, `${status}, and nobody looks at it again`).toBe(true)
    }
    if (!world.dedupes) {
      expect(world.wire.sends.get(id) ?? 0, 'sent again').toBeLessThanOrEqual(1)
    }
  }
  await checkGrowth(world, refunds)
}

/** Every unit of growth is matched once: what is matched was shown. */
async function checkGrowth(world: World, refunds: readonly RefundBook[]): Promise<void> {
  for (const { paymentId, atFirst, now, foreign } of await readPayments(world)) {
    const own = refunds.filter((one) => one.paymentId === paymentId && one.matched)
    const shown = world.countsUnsettled ? (world.highest.get(paymentId) ?? 0) : Number(now)
    const matched = sum([...own, { amount: foreign }, { amount: atFirst }])
    expect(matched, `matched of ${shown} shown`).toBeLessThanOrEqual(shown)
  }
}

/** What may still reach the gateway of a payment by our doing, without being there yet. */
export function sumUnsent(
  world: World,
  refunds: readonly RefundBook[],
  paymentId: string,
  sendable: readonly string[],
): number {
  return sum(
    refunds.filter(
      (one) =>
        one.paymentId === paymentId &&
        sendable.includes(one.status) &&
        standAtGateway(world, one.id) === 'none',
    ),
  )
}

/** A person looks at the gateway's ledger and says what is there; while it can still change they wait. */
export async function decide(world: World, id: string): Promise<void> {
  const stands = standAtGateway(world, id)
  if (stands === 'accepted' || world.pause?.refundId === id) return
  const { status } = await world.rig.api(`/v1/refunds/${id}/resolution`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({
      outcome: stands === 'succeeded' ? 'succeeded' : 'failed',
      reason: 'looked it up in the ledger',
    }),
  })
  expect(status).toBe(200)
}

const ROUNDS = 8

/** Everything settles, every notification arrives, time passes, people decide: the books agree with the ledger, to the unit. */
export async function finish(world: World): Promise<void> {
  await wake(world)
  await checkBooks(world)
  for (let round = 0; round < ROUNDS; round += 1) {
    const open = (await readRefunds(world)).filter(
      ({ status }) => status !== 'succeeded' && status !== 'failed',
    )
    if (round > 0 && open.length === 0 && findOpen(world).length === 0) break
    for (const payment of world.payments) payment.refundedAmountShown = null
    for (const refund of findOpen(world)) await settle(world, refund, undefined)
    const untold = findSettled(world).filter(({ requestId }) => !world.told.has(requestId))
    for (const refund of untold) await tell(world, refund)
    await look(world, round === 0 ? 0 : SCHEDULE.resendMs)
    await look(world, SCHEDULE.confirmMs)
    await look(world, SCHEDULE.resolveMs)
    if (round > 1) {
      const doubtful = open.filter(({ status }) => status === 'needs_review')
      for (const { id } of doubtful) await decide(world, id)
      await look(world, 0)
    }
  }
  for (const { id, status } of await readRefunds(world)) {
    const moved = standAtGateway(world, id) === 'succeeded'
    expect({ id, status }).toEqual({ id, status: moved ? 'succeeded' : 'failed' })
  }
  for (const payment of world.payments) {
    const left = Number((await world.rig.payment(payment.id)).refundableAmount)
    expect(sum([{ amount: left }, { amount: countTaken(payment) }]), 'what is left').toBe(
      Number(payment.amount),
    )
  }
}

async function look(world: World, afterMs: number): Promise<void> {
  if (afterMs > 0) await shiftTime(world, afterMs)
  await runPass(world, { ask: true })
  await checkBooks(world)
}
