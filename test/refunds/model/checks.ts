import { expect } from 'vitest'
import {
  countTaken,
  deliverNotification,
  findOpen,
  findSettled,
  runPass,
  SCHEDULE,
  settle,
  shiftTime,
  showsNow,
  sum,
  type World,
  wake,
} from './world.ts'

type RefundBook = {
  id: string
  paymentId: string
  amount: string
  status: string
  matched: boolean
  inferred: boolean
  due: boolean
}

type PaymentBook = { paymentId: string; atFirst: string; now: string; external: string }

/** A refund's status at the gateway; `none` when it never arrived. */
export function readGatewayStatus({ payments }: World, id: string) {
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
        where f.payment_id = p.payment_id and f.matched) as external
    from payments p where p.transaction_id = ${transactionId}`
}

/** What must hold after every step, whatever happened. */
export async function checkBooks(world: World): Promise<void> {
  for (const payment of world.payments) {
    const { id, amount, refunds } = payment
    expect(countTaken(payment), `moved or moving of ${amount}`).toBeLessThanOrEqual(Number(amount))
    for (const { requestId } of refunds) {
      const ours = world.asked.some((one) => one.id === requestId)
      expect(ours || world.portal.has(requestId), 'the refund was not requested').toBe(true)
    }
    world.highest.set(id, Math.max(world.highest.get(id) ?? 0, showsNow(world, payment)))
  }
  const refunds = await readRefunds(world)
  for (const { id, status, due, inferred } of refunds) {
    const actual = readGatewayStatus(world, id)
    if (status === 'failed') {
      expect(['none', 'failed'], 'failed, and its money moves').toContain(actual)
      expect(world.pause?.refundId, 'failed, and its bytes may still leave').not.toBe(id)
    }
    if (status === 'succeeded' && !(inferred && world.countsUnsettled)) {
      expect(actual, 'succeeded, and its money did not move').toBe('succeeded')
    }
    if (['pending', 'sending', 'accepted', 'unknown'].includes(status)) {
      expect(due, `${status}, and has no next check`).toBe(true)
    }
    if (!world.dedupes) {
      expect(world.wire.sends.get(id) ?? 0, 'sent again').toBeLessThanOrEqual(1)
    }
  }
  await checkGrowth(world, refunds)
}

/** Every unit of the refunded amount is matched once: no more is matched than was shown. */
async function checkGrowth(world: World, refunds: readonly RefundBook[]): Promise<void> {
  for (const { paymentId, atFirst, now, external } of await readPayments(world)) {
    const own = refunds.filter((one) => one.paymentId === paymentId && one.matched)
    const shown = world.countsUnsettled ? (world.highest.get(paymentId) ?? 0) : Number(now)
    const matched = sum([...own, { amount: external }, { amount: atFirst }])
    expect(matched, `matched of ${shown} shown`).toBeLessThanOrEqual(shown)
  }
}

/** The sum of a payment's refunds that the service may still send and that have not reached the gateway. */
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
        readGatewayStatus(world, one.id) === 'none',
    ),
  )
}

/** A person decides by the gateway's ledger, and waits while it can still change. */
export async function decide(world: World, id: string): Promise<void> {
  const actual = readGatewayStatus(world, id)
  if (actual === 'accepted' || world.pause?.refundId === id) return
  const { status } = await world.rig.api(`/v1/refunds/${id}/resolution`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({
      outcome: actual === 'succeeded' ? 'succeeded' : 'failed',
      reason: 'looked it up in the ledger',
    }),
  })
  expect(status).toBe(200)
}

const ROUNDS = 8

/** Everything settles, every notification arrives, time passes, people decide: then the refunds agree with the ledger exactly. */
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
    const unnotified = findSettled(world).filter(({ requestId }) => !world.notified.has(requestId))
    for (const refund of unnotified) await deliverNotification(world, refund)
    await syncAfter(world, round === 0 ? 0 : SCHEDULE.resendMs)
    await syncAfter(world, SCHEDULE.confirmMs)
    await syncAfter(world, SCHEDULE.resolveMs)
    if (round > 1) {
      const reviewed = open.filter(({ status }) => status === 'needs_review')
      for (const { id } of reviewed) await decide(world, id)
      await syncAfter(world, 0)
    }
  }
  for (const { id, status } of await readRefunds(world)) {
    const moved = readGatewayStatus(world, id) === 'succeeded'
    expect({ id, status }).toEqual({ id, status: moved ? 'succeeded' : 'failed' })
  }
  for (const payment of world.payments) {
    const left = Number((await world.rig.payment(payment.id)).refundableAmount)
    expect(sum([{ amount: left }, { amount: countTaken(payment) }]), 'what is left').toBe(
      Number(payment.amount),
    )
  }
}

async function syncAfter(world: World, afterMs: number): Promise<void> {
  if (afterMs > 0) await shiftTime(world, afterMs)
  await runPass(world, { ask: true })
  await checkBooks(world)
}
