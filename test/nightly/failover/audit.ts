import { addAmounts, compareAmounts } from '../../../src/money.ts'
import { ask } from '../../support/postgres-server.ts'
import type { Movement } from './gateway.ts'
import type { Order, TakenRefund } from './requests.ts'

/** What clients were promised: bytes of notifications by their SHA-256, and refunds. */
export type Promised = { notifications: ReadonlySet<string>; refunds: readonly TakenRefund[] }

export type StoredRefund = {
  id: string
  key: string
  paymentId: string
  amount: string
  status: string
  requestedAt: string
}

/** What the service's database holds. */
export type Stored = { notifications: ReadonlySet<string>; refunds: StoredRefund[] }

export async function readStored(url: string): Promise<Stored> {
  const bodies = await ask<{ sha256: string }>(
    url,
    `select encode(sha256(convert_to(body, 'UTF8')), 'hex') as sha256 from ipn_events`,
  )
  const refunds = await ask<StoredRefund>(
    url,
    `select refund_id::text as id, idempotency_key as key, payment_id as "paymentId", amount::text, status,
      to_char(requested_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') as "requestedAt" from refunds`,
  )
  return { notifications: new Set(bodies.map(({ sha256 }) => sha256)), refunds }
}

/** What was promised and is not stored, or is stored differently. */
export function findLost(promised: Promised, stored: Stored): string[] {
  const kept = new Map(stored.refunds.map((refund) => [refund.key, refund]))
  const lost = promised.refunds.filter(({ key, refundId, paymentId, amount }) => {
    const found = kept.get(key)
    return (
      found?.id !== refundId ||
      found.paymentId !== paymentId ||
      compareAmounts(found.amount, amount) !== 0
    )
  })
  const silent = [...promised.notifications].filter((one) => !stored.notifications.has(one))
  return [...silent.map((one) => `notification ${one}`), ...lost.map(({ key }) => `refund ${key}`)]
}

/**
 * Money that moved twice: a request that moved it more than once, a payment of which more moved than its order system
 * ever requested, and a key with several refunds.
 */
export function findDoubled(
  orders: readonly Order[],
  taken: readonly TakenRefund[],
  movements: readonly Movement[],
): string[] {
  const requests = findRepeated(movements.map(({ requestId }) => requestId))
  const pairs = [...new Set(taken.map(({ key, refundId }) => `${key} ${refundId}`))]
  const keys = findRepeated(pairs.map((pair) => pair.split(' ')[0] ?? ''))
  const wished = new Map(orders.map(({ paymentId, refunds }) => [paymentId, sum(refunds)]))
  const payments = new Set(movements.map(({ paymentId }) => paymentId))
  const over = [...payments].filter((id) => {
    const moved = sum(movements.filter(({ paymentId }) => paymentId === id))
    return compareAmounts(moved, wished.get(id) ?? '0') > 0
  })
  return [
    ...requests.map((id) => `refund ${id} moved money twice`),
    ...keys.map((key) => `key ${key} has several refunds`),
    ...over.map((id) => `more of payment ${id} moved than was requested`),
  ]
}

/** Where the gateway and the service disagree at rest: refunds that have not succeeded, or that moved no money. */
export function findDifferences(stored: Stored, movements: readonly Movement[]): string[] {
  const moved = new Map(movements.map((movement) => [movement.requestId, movement]))
  const known = new Set(stored.refunds.map(({ id }) => id))
  return [
    ...stored.refunds
      .filter(({ id, status, paymentId, amount }) => {
        const movement = moved.get(id)
        return (
          status !== 'succeeded' ||
          movement?.paymentId !== paymentId ||
          compareAmounts(movement.amount, amount) !== 0
        )
      })
      .map(({ id, status, amount }) => `refund ${id} of ${amount} is ${status}`),
    ...movements
      .filter(({ requestId }) => !known.has(requestId))
      .map(({ requestId }) => `${requestId} moved money and is not stored`),
  ]
}

function sum(all: readonly { amount: string }[]): string {
  return addAmounts(all.map(({ amount }) => amount))
}

function findRepeated(items: readonly string[]): string[] {
  const seen = new Set<string>()
  return [...new Set(items.filter((item) => seen.has(item) || !seen.add(item)))]
}
