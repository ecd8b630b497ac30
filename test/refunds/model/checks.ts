import { expect } from 'vitest'
import { Problem } from '../../../src/platform/http/problems.ts'
import { expireApprovals } from '../../../src/refunds/approval/expire-approvals.ts'
import type { SandboxRefund } from '../../../src/sandbox/state.ts'
import {
  audit,
  type Books,
  type MadeRefund,
  type ShownPayment,
  type ShownRefund,
} from './auditor.ts'
import {
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

/** A refund's status at the gateway; `none` when it never arrived. */
export function readGatewayStatus({ payments }: World, id: string) {
  const all = payments.flatMap(({ refunds }) => refunds)
  const [first, ...others] = all.filter(({ requestId }) => requestId === id)
  expect(others, 'the gateway took one request id twice').toEqual([])
  return first?.status ?? 'none'
}

export async function readRefunds({ rig, transactionId }: World): Promise<ShownRefund[]> {
  const rows = await rig.database.sql<(Omit<ShownRefund, 'amount'> & { amount: string })[]>`
    select refund_id as id, payment_id as "paymentId", amount, status, matched, inferred, review,
      due_at is not null as due, exists (select from discrepancies d
        where d.transaction_id = r.transaction_id and (d.refund_id = r.refund_id
          or (d.payment_id = r.payment_id and d.kind = 'unexplained_growth'))) as disputed
    from refunds r where transaction_id = ${transactionId} order by requested_at`
  return rows.map(({ amount, ...row }) => ({ ...row, amount: Number(amount) }))
}

type PaymentRow = { id: string; amount: string; atFirst: string; matched: string; reserved: string }

async function readPayments(world: World): Promise<ShownPayment[]> {
  const rows = await world.rig.database.sql<PaymentRow[]>`
    select p.payment_id as id, p.amount, p.refunded_at_first as "atFirst",
      (select coalesce(sum(f.amount), 0) from foreign_refunds f
        where f.payment_id = p.payment_id and f.outcome is null and f.matched) as matched,
      (select coalesce(sum(f.amount), 0) from foreign_refunds f
        where f.payment_id = p.payment_id and f.outcome is null and not f.matched) as reserved
    from payments p where p.transaction_id = ${world.transactionId}`
  const shown: ShownPayment[] = []
  for (const { id, amount, atFirst, matched, reserved } of rows) {
    const { refundableAmount } = await world.rig.payment(id)
    shown.push({
      id,
      amount: Number(amount),
      refundable: Number(refundableAmount),
      atFirst: Number(atFirst),
      highest: world.highest.get(id) ?? 0,
      externalMatched: Number(matched),
      externalReserved: Number(reserved),
    })
  }
  return shown
}

/** What must hold after every step, whatever happened. */
export async function checkBooks(world: World): Promise<void> {
  for (const payment of world.payments) {
    const shown = Math.max(world.highest.get(payment.id) ?? 0, showsNow(world, payment))
    world.highest.set(payment.id, shown)
  }
  const violations = audit(await readBooks(world, false))
  const excused: readonly string[] = world.overdrawn ? ['too_much_moved', 'refundable_twice'] : []
  expect(violations.filter(({ rule }) => !excused.includes(rule))).toEqual([])
  const pausedId = world.pause?.refundId
  const failed = (await readRefunds(world)).find(({ id }) => id === pausedId)?.status === 'failed'
  expect(failed && !world.restored, 'failed, and its bytes may still leave').toBe(false)
}

/** Both sides of the wire, for the auditor. */
async function readBooks(world: World, settled: boolean): Promise<Books> {
  const shown = await readRefunds(world)
  const excused = shown.filter(({ inferred }) => inferred && world.countsUnsettled)
  const lost = world.restored ? world.asked : []
  return {
    payments: await readPayments(world),
    shown,
    made: world.payments.flatMap(({ refunds }) => refunds.map(showMade)),
    known: new Set([...world.asked.map(({ id }) => id), ...world.portal]),
    sends: world.wire.sends,
    mayRepeat: world.dedupes,
    repeatedLate: world.repeatedLate,
    misreported: new Set([...excused, ...lost].map(({ id }) => id).concat([...world.lies])),
    settled,
  }
}

const MADE = { accepted: 'moving', succeeded: 'moved', failed: 'failed' } as const

function showMade({ requestId, payment, amount, status }: SandboxRefund): MadeRefund {
  return { requestId, paymentId: payment.id, amount: Number(amount), status: MADE[status] }
}

/** The sum of a payment's refunds that the service may still send and that have not reached the gateway. */
export function sumUnsent(
  world: World,
  refunds: readonly ShownRefund[],
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
  const outcome = actual === 'succeeded' ? 'succeeded' : 'failed'
  const refused = await postDecision(world, id, { outcome })
  if (refused === undefined) return
  expect(refused).toBe('against_evidence')
  expect(await postDecision(world, id, { outcome, againstEvidence: true })).toBeUndefined()
}

type Decision = { outcome: 'succeeded' | 'failed' | 'returned'; againstEvidence?: boolean }

/** @returns the code of the refusal, or undefined when the decision was accepted */
export async function postDecision(
  { rig }: World,
  id: string,
  decision: Decision,
): Promise<string | undefined> {
  const response = await rig.api(`/v1/refunds/${id}/resolution`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ ...decision, reason: 'looked it up in the ledger' }),
  })
  if (response.status === 200) return undefined
  expect(response.status).toBe(409)
  const { code } = Problem.parse(await response.json())
  return code
}

const ROUNDS = 8

/** Everything settles, every notification arrives, time passes, people decide: then the refunds agree with the ledger exactly. */
export async function finish(world: World): Promise<void> {
  await wake(world)
  await checkBooks(world)
  for (let round = 0; round < ROUNDS; round += 1) {
    const open = (await readRefunds(world)).filter(
      ({ status }) => !['succeeded', 'failed', 'returned'].includes(status),
    )
    if (round > 0 && open.length === 0 && findOpen(world).length === 0) break
    for (const payment of world.payments) {
      payment.refundedAmountShown = null
      payment.listed = true
      payment.status = 'SUCCESS'
    }
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
  const violations = audit(await readBooks(world, true))
  const excused: readonly string[] = world.overdrawn ? ['too_much_moved', 'refundable_twice'] : []
  expect(violations.filter(({ rule }) => !excused.includes(rule))).toEqual([])
}

async function syncAfter(world: World, afterMs: number): Promise<void> {
  if (afterMs > 0) await shiftTime(world, afterMs)
  await expireApprovals(world.ctx)
  await runPass(world, { ask: true })
  await checkBooks(world)
}
