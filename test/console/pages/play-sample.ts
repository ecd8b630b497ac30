import { z } from 'zod'
import { waitUntil } from '../../support/wait-until.ts'

/** How a sample is played: the service's API with a key for everything, and the sandbox's control routes. */
export type SamplePlayer = {
  api(path: string, init?: RequestInit): Promise<Response>
  control(method: string, path: string, body?: unknown): Promise<unknown>
}

/** The objects that the pages of the console show. */
export type Sample = {
  /** Paid once, with a partial refund that succeeded. */
  refunded: { transactionId: string; paymentId: string; refundId: string }
  /** One of two payments for the same order. */
  paidTwice: { transactionId: string; paymentId: string }
  /** A refund above the limit, which waits for a second person. */
  toApprove: { transactionId: string; refundId: string }
  /** A refund that the gateway refused with an unknown code. */
  inReview: { transactionId: string; refundId: string }
  /** The id of a discrepancy between both sides. */
  discrepancyId: string
}

const Made = z.object({
  transactionId: z.string(),
  payments: z.tuple([z.object({ id: z.string() })]),
})
const Refund = z.object({ id: z.string(), status: z.string() })
const Discrepancies = z.object({ data: z.array(z.object({ id: z.string() })) })

const RECEIVER = { accountName: 'NGUYEN VAN A', accountNumber: '123456789', swiftCode: 'ASCBVNVX' }

type Made = { transactionId: string; paymentId: string }

/** Plays customers, refunds and a disagreement: everything that a page of the console can show. */
export async function playSample({ api, control }: SamplePlayer): Promise<Sample> {
  async function pay(orderId: string, amount: string, paymentMethod = 'ATM'): Promise<Made> {
    const payments = [{ amount, paymentMethod, status: 'SUCCESS' }]
    const made = Made.parse(await control('POST', '/transactions', { orderId, payments }))
    const paymentId = made.payments[0].id
    await waitUntil(async () => (await api(`/v1/payments/${paymentId}`)).status === 200, {
      what: `payment ${paymentId} is stored`,
    })
    return { transactionId: made.transactionId, paymentId }
  }
  async function refund(paymentId: string, body: object, status: string): Promise<string> {
    const headers = { 'content-type': 'application/json', 'idempotency-key': `sample-${paymentId}` }
    const init = { method: 'POST', headers, body: JSON.stringify(body) }
    const { id } = Refund.parse(await (await api(`/v1/payments/${paymentId}/refunds`, init)).json())
    await waitUntil(
      async () => Refund.parse(await (await api(`/v1/refunds/${id}`)).json()).status === status,
      { what: `refund ${id} is ${status}` },
    )
    return id
  }
  const refunded = await pay('DH1001', '250000', 'QR')
  const returned = { amount: '150000', reason: 'Returned goods: one of two', receiver: RECEIVER }
  const refundId = await refund(refunded.paymentId, returned, 'succeeded')
  const paidTwice = await pay('DH1002', '99000')
  await pay('DH1002', '99000')
  const large = await pay('DH1003', '9000000')
  const approveId = await refund(large.paymentId, { reason: 'Cancelled' }, 'awaiting_approval')
  const odd = await pay('DH1004', '120000')
  await control('POST', '/faults', { command: 'REFUND', kind: 'code', code: 1, times: 1 })
  const reviewId = await refund(odd.paymentId, { reason: 'Damaged' }, 'needs_review')
  const portal = await pay('DH1005', '80000')
  await control('POST', `/payments/${portal.paymentId}/portal-refund`, { amount: '80000' })
  const readDiscrepancies = async () =>
    Discrepancies.parse(await (await api('/v1/discrepancies')).json()).data
  await waitUntil(async () => (await readDiscrepancies()).length > 0, {
    what: 'the portal refund is a discrepancy',
  })
  const [discrepancy] = await readDiscrepancies()
  return {
    refunded: { ...refunded, refundId },
    paidTwice,
    toApprove: { transactionId: large.transactionId, refundId: approveId },
    inReview: { transactionId: odd.transactionId, refundId: reviewId },
    discrepancyId: discrepancy?.id ?? '',
  }
}
