import { expect } from 'vitest'
import { syncDue } from '../../src/sync/sync-due.ts'
import { type Asked, expectTaken, post } from './ask.ts'
import type { LabPayment, RefundLab } from './refund-lab.ts'
import { makeTransaction, notifyOf } from './sync.ts'

/** A transaction of an order, with its payments, oldest first. */
export type PaidOrder = { transactionId: string; payments: LabPayment[] }

type Given = { amount?: string; status?: string; paymentMethod?: string }

let serial = 0

/**
 * Makes a transaction of an order, notifies it with a verified order id, and syncs it once.
 * @param named members of its notification that differ; `svc_Amount` is by default that of its first payment
 */
export async function payOrder(
  lab: RefundLab,
  orderId: string,
  payments: readonly Given[] = [{}],
  named: Record<string, string | number> = {},
): Promise<PaidOrder> {
  serial += 1
  const transactionId = `T-PAID-${String(serial).padStart(4, '0')}`
  const list = payments.map((one, n) => ({
    id: `P-PAID-${serial}-${n}`,
    amount: '100',
    ...one,
  }))
  await makeTransaction(lab, transactionId, list)
  await notifyOf(lab, transactionId, {
    svc_OrderID: orderId,
    svc_Currency: 'VND',
    svc_Amount: Number(list[0]?.amount ?? 0),
    svc_ResponseCode: 0,
    ...named,
  })
  await syncDue(lab.service.ctx)
  return { transactionId, payments: list.map(({ id }) => ({ id, transactionId })) }
}

/** Two payments of 100 of one transaction. */
export const TWICE = [{ amount: '100' }, { amount: '100' }]

/** One of the payments of an order. */
export const pick = ({ payments }: PaidOrder, place = 0): LabPayment =>
  payments[place] ?? expect.fail('no such payment')

/** Two transactions of one order. */
export const payBoth = async (lab: RefundLab) =>
  [await payOrder(lab, 'DH1'), await payOrder(lab, 'DH1')] as const

/** Requests a surplus refund, which is taken. */
export const takeSurplus = async (
  lab: RefundLab,
  { transactionId }: { transactionId: string },
  body?: unknown,
) => await expectTaken(await askSurplus(lab, transactionId, body))

/** Requests a surplus refund. */
export const askSurplus = (
  { service: { url } }: RefundLab,
  transactionId: string,
  body: unknown = {},
  asked: Omit<Asked, 'url'> = {},
): Promise<Response> =>
  post({ url, ...asked }, `/v1/transactions/${transactionId}/surplus-refund`, body)
