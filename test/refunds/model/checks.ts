import { expect } from 'vitest'
import { Problem } from '../../../src/platform/http/problems.ts'
import { expireApprovals } from '../../../src/refunds/approval/expire-approvals.ts'
import type { SandboxRefund } from '../../../src/sandbox/state.ts'
import { checkAccounts, type Worlds } from './accounts.ts'
import { expireUnsent } from './approvals.ts'
import {
  audit,
  type Books,
  type MadeRefund,
  type ShownPayment,
  type ShownRefund,
} from './auditor.ts'
import { releaseAll } from './holds.ts'
import type { Deed } from './tally.ts'
import {
  deliverNotification,
  findOpen,
  findSettled,
  inAccountOf,
  note,
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

export async function readRefunds({ rig, account, transactionId }: World): Promise<ShownRefund[]> {
  const rows = await rig.database.sql<(Omit<ShownRefund, 'amount'> & { amount: string })[]>`
    select refund_id as id, payment_id as "paymentId", amount, status, matched, inferred, review,
      failure_reason as failure, due_at is not null as due, resolution ->> 'outcome' as decided, exists (select from discrepancies d
        where d.merchant_code = r.merchant_code and d.transaction_id = r.transaction_id
          and (d.refund_id = r.refund_id
            or (d.payment_id = r.payment_id and d.kind = 'unexplained_growth'))) as disputed
    from refunds r
    where merchant_code = ${account.merchantCode} and transaction_id = ${transactionId}
    order by requested_at, refund_id`
  return rows.map(({ amount, ...row }) => ({ ...row, amount: Number(amount) }))
}

type PaymentRow = { id: string; amount: string; atFirst: string; matched: string; reserved: string }

/** @param settled whether what is left to refund is looked at: it takes a request */
async function readPayments(world: World, settled: boolean): Promise<ShownPayment[]> {
  const rows = await world.rig.database.sql<PaymentRow[]>`
    select p.payment_id as id, p.amount, p.refunded_at_first as "atFirst",
      coalesce(sum(f.amount) filter (where f.matched), 0) as matched,
      coalesce(sum(f.amount) filter (where not f.matched), 0) as reserved
    from payments p left join foreign_refunds f
      on f.merchant_code = p.merchant_code and f.payment_id = p.payment_id and f.outcome is null
    where p.merchant_code = ${world.account.merchantCode} and p.transaction_id = ${world.transactionId}
    group by p.merchant_code, p.payment_id`
  const shown: ShownPayment[] = []
  for (const { id, amount, atFirst, matched, reserved } of rows) {
    const refundable = settled
      ? (await world.rig.payment(id, world.account.merchantCode)).refundableAmount
      : '0'
    shown.push({
      id,
      amount: Number(amount),
      refundable: Number(refundable),
      atFirst: Number(atFirst),
      highest: world.highest.get(id) ?? 0,
      externalMatched: Number(matched),
      externalReserved: Number(reserved),
    })
  }
  return shown
}

/** The payments that show more than refunds explain. */
export async function listUnexplained(world: World): Promise<string[]> {
  const own = (await readRefunds(world)).filter(({ matched }) => matched)
  const payments = await readPayments(world, false)
  return payments.flatMap(({ id, atFirst, externalMatched }) => {
    const matched = own.filter(({ paymentId }) => paymentId === id)
    const explained = sum([{ amount: atFirst }, { amount: externalMatched }, ...matched])
    const payment = world.payments.find((one) => one.id === id)
    return payment && showsNow(world, payment) > explained ? [id] : []
  })
}

type AttemptRow = { refundId: string; paymentId: string; at: number }

/** The attempts on record, by the clock that recorded them. */
async function readAttempts(world: World): Promise<AttemptRow[]> {
  return await world.rig.database.sql<AttemptRow[]>`
    select a.refund_id as "refundId", r.payment_id as "paymentId",
      (extract(epoch from a.recorded_at) * 1000000)::float8 as at
    from refund_attempts a join refunds r using (merchant_code, refund_id)
    where merchant_code = ${world.account.merchantCode} and transaction_id = ${world.transactionId}`
}

/**
 * What must hold after every step, whatever happened.
 * @param rowsChanged false when the account's rows are what they were at the last audit
 */
export async function checkBooks(world: World, rowsChanged: boolean): Promise<void> {
  for (const payment of world.payments) {
    const shown = Math.max(world.highest.get(payment.id) ?? 0, showsNow(world, payment))
    world.highest.set(payment.id, shown)
  }
  const made = listMade(world)
  const outside = JSON.stringify([made, [...world.wire.sends], [...world.highest]])
  if (!rowsChanged && outside === world.audited && world.changedByOther.length === 0) return
  world.audited = outside
  const books = await readBooks(world, false)
  expectNoViolation(world, books)
  for (const { id, inferred } of books.shown) {
    if (inferred && !world.inferred.has(id)) note(world, 'inferred')
    if (inferred) world.inferred.add(id)
  }
  const pausedId = world.pause?.refundId
  const failed = books.shown.find(({ id }) => id === pausedId)?.status === 'failed'
  expect(failed && !world.restored, 'failed, and its bytes may still leave').toBe(false)
}

function expectNoViolation({ overdrawn, account }: World, books: Books): void {
  const excused: readonly string[] = overdrawn ? ['too_much_moved', 'refundable_twice'] : []
  const violations = audit(books).filter(({ rule }) => !excused.includes(rule))
  const { payments, shown, made } = books
  const seen = violations.length > 0 ? JSON.stringify({ payments, shown, made }, undefined, 1) : ''
  expect(violations, `${account.merchantCode} ${seen}`).toEqual([])
}

/** Both sides of the wire, for the auditor. */
async function readBooks(world: World, settled: boolean): Promise<Books> {
  const [shown, payments, attempts] = await Promise.all([
    readRefunds(world),
    readPayments(world, settled),
    readAttempts(world),
  ])
  const excused = shown.filter(({ inferred }) => inferred && world.countsUnsettled)
  const lost = world.restored ? world.asked : []
  const waited = world.restored ? [] : world.asked
  return {
    payments,
    shown,
    made: listMade(world),
    known: new Set([...world.asked.map(({ id }) => id), ...world.portal]),
    sends: world.wire.sends,
    lostSends: world.lostSends,
    attempts,
    holds: [...world.pastHolds, ...world.holds.values()],
    cancelled: world.cancelled,
    waitedMs: new Map(waited.map(({ id, atMs }) => [id, world.clockMs - atMs])),
    mayRepeat: world.dedupes,
    repeatedLate: world.repeatedLate,
    misreported: new Set([...excused, ...lost].map(({ id }) => id).concat([...world.lies])),
    changedByOther: world.changedByOther,
    settled,
  }
}

function listMade({ payments }: World): MadeRefund[] {
  return payments.flatMap(({ refunds }) => refunds.map(showMade))
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

/**
 * A person decides by the gateway's ledger, and waits while it can still change.
 * @returns whether they decided
 */
export async function decide(world: World, id: string): Promise<boolean> {
  const actual = readGatewayStatus(world, id)
  if (actual === 'accepted' || world.pause?.refundId === id) return false
  const outcome = actual === 'succeeded' ? 'succeeded' : 'failed'
  const refused = await postDecision(world, id, { outcome })
  if (refused === undefined) return true
  expect(refused).toBe('against_evidence')
  expect(await postDecision(world, id, { outcome, againstEvidence: true })).toBeUndefined()
  return true
}

type Decision = { outcome: 'succeeded' | 'failed' | 'returned'; againstEvidence?: boolean }

/** @returns the code of the refusal, or undefined when the decision was accepted */
export async function postDecision(
  world: World,
  id: string,
  decision: Decision,
): Promise<string | undefined> {
  const response = await world.rig.api(`/v1/refunds/${id}/resolution?${inAccountOf(world)}`, {
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

/**
 * Everything settles, every notification arrives, time passes, people decide: then the refunds of both accounts agree with the
 * ledger exactly.
 */
export async function finish(worlds: Worlds): Promise<void> {
  for (const world of worlds) await wake(world)
  // What has expired of either account by now is not to expire while the other one is finished.
  await expireUnsent(worlds[0])
  await checkAccounts(worlds, undefined)
  for (const world of worlds) {
    if (!world.staysHeld) await releaseAll(world)
    await finishOne(worlds, world)
    const books = await readBooks(world, true)
    expectNoViolation(world, books)
    for (const deed of books.shown.flatMap(describeEnd)) note(world, deed)
  }
}

const EXPIRED = ['approval_expired', 'not_sent_in_time'] as const

function describeEnd({ status, failure }: ShownRefund): Deed[] {
  const expired = EXPIRED.find((one) => status === 'failed' && one === failure)
  if (expired) return [`ended: ${expired}`]
  const end = (['succeeded', 'failed', 'returned'] as const).find((one) => one === status)
  return end ? [`ended: ${end}`] : []
}

async function finishOne(worlds: Worlds, world: World): Promise<void> {
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
    await syncAfter(worlds, world, round === 0 ? 0 : SCHEDULE.resendMs)
    await syncAfter(worlds, world, SCHEDULE.confirmMs)
    await syncAfter(worlds, world, SCHEDULE.resolveMs)
    if (round > 1) {
      const reviewed = open.filter(({ status }) => status === 'needs_review')
      for (const { id } of reviewed) await decide(world, id)
      await syncAfter(worlds, world, 0)
    }
  }
}

async function syncAfter(worlds: Worlds, world: World, afterMs: number): Promise<void> {
  if (afterMs > 0) await shiftTime(world, afterMs)
  await expireApprovals(world.ctx)
  await runPass(world, { ask: true })
  await checkAccounts(worlds, world)
}
