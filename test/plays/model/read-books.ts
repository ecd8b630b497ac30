import { expect } from 'vitest'
import type { SandboxRefund } from '../../../src/sandbox/state.ts'
import type { Books, MadeRefund, Phase, ShownExternal, ShownPayment, ShownRefund } from './books.ts'
import { sum, type World } from './world.ts'

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
      failure_reason as failure, failure_source as "failureSource", due_at is not null as due,
      status = 'returned' and return_sightings >= 2 as released, exists (select from discrepancies d
        where d.merchant_code = r.merchant_code and d.transaction_id = r.transaction_id
          and d.resolved_at is null and (d.refund_id = r.refund_id
            or (d.payment_id = r.payment_id and d.kind = 'unexplained_growth'))) as disputed
    from refunds r
    where merchant_code = ${account.merchantCode} and transaction_id = ${transactionId}
    order by requested_at, refund_id`
  return rows.map(({ amount, ...row }) => ({ ...row, amount: Number(amount) }))
}

type ExternalRow = Omit<ShownExternal, 'amount'> & { amount: string }

export async function readExternal({ rig, account, payments }: World): Promise<ShownExternal[]> {
  const ids = payments.map(({ id }) => id)
  const rows = await rig.database.sql<ExternalRow[]>`
    select request_id as "requestId", payment_id as "paymentId", amount,
      coalesce(outcome, case when matched then 'matched' else 'reserved' end) as state
    from foreign_refunds
    where merchant_code = ${account.merchantCode} and payment_id = any(${ids}::text[])
    order by request_id`
  return rows.map(({ amount, ...row }) => ({ ...row, amount: Number(amount) }))
}

type PaymentRow = {
  id: string
  amount: string
  atFirst: string
  refunded: string
  unexplained: boolean
}

async function readPayments(world: World): Promise<ShownPayment[]> {
  const { rig, account, transactionId, highest } = world
  const rows = await rig.database.sql<PaymentRow[]>`
    select payment_id as id, amount, refunded_at_first as "atFirst", refunded_amount as refunded,
      exists (select from discrepancies d
        where d.merchant_code = p.merchant_code and d.transaction_id = p.transaction_id
          and d.payment_id = p.payment_id and d.kind = 'unexplained_growth' and d.resolved_at is null) as unexplained
    from payments p
    where merchant_code = ${account.merchantCode} and transaction_id = ${transactionId}`
  return await Promise.all(
    rows.map(async ({ id, amount, atFirst, refunded, unexplained }) => ({
      id,
      amount: Number(amount),
      refundable: Number((await rig.payment(id, account.merchantCode)).refundableAmount),
      atFirst: Number(atFirst),
      refunded: Number(refunded),
      highest: highest.get(id) ?? 0,
      unexplained,
    })),
  )
}

/**
 * What counts as refunded of each payment beyond what is matched to a refund, from the rows alone;
 * negative when less counts.
 */
export async function readUnmatched(world: World): Promise<Map<string, number>> {
  const { rig, account, transactionId } = world
  const rows = await rig.database.sql<{ id: string; unmatched: string }[]>`
    select p.payment_id as id, coalesce(p.counted_refunded, p.refunded_amount) - p.refunded_at_first
      - (select coalesce(sum(r.amount), 0) from refunds r where r.merchant_code = p.merchant_code
          and r.payment_id = p.payment_id and r.matched and not r.in_first_sight)
      - (select coalesce(sum(f.amount), 0) from foreign_refunds f where f.merchant_code = p.merchant_code
          and f.payment_id = p.payment_id and f.matched and f.outcome is null) as unmatched
    from payments p
    where merchant_code = ${account.merchantCode} and transaction_id = ${transactionId}`
  return new Map(rows.map(({ id, unmatched }) => [id, Number(unmatched)]))
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

/** Both sides of the wire, for the auditor. */
export async function readBooks(world: World, phase: Phase): Promise<Books> {
  const [shown, external, payments, attempts] = await Promise.all([
    readRefunds(world),
    readExternal(world),
    readPayments(world),
    readAttempts(world),
  ])
  const { asked, told, wire, clockMs } = world
  noteFailed(world, shown)
  return {
    phase,
    payments,
    shown,
    external,
    made: listMade(world),
    known: new Set([...asked.map(({ id }) => id), ...world.portal]),
    sends: wire.sends,
    lostSends: world.lostSends,
    attempts,
    holds: [...world.pastHolds, ...world.holds.values()],
    cancelled: world.cancelled,
    waitedMs: new Map((world.restored ? [] : asked).map(({ id, atMs }) => [id, clockMs - atMs])),
    mayRepeat: world.dedupes,
    repeatedLate: world.repeatedLate,
    ...told,
    failedAt: world.failedAt,
    misjudged: world.misjudged,
    misreported: world.lies,
    changedByOther: world.changedByOther,
  }
}

function noteFailed({ failedAt, clockMs }: World, shown: readonly ShownRefund[]): void {
  for (const { id, status } of shown) {
    if (status !== 'failed') failedAt.delete(id)
    else if (!failedAt.has(id)) failedAt.set(id, clockMs)
  }
}

export function listMade({ payments }: World): MadeRefund[] {
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
