import { randomUUID } from 'node:crypto'
import { z } from 'zod'
import { Payment } from '../../src/payments/view.ts'
import { Refund, type RefundView } from '../../src/refunds/view.ts'
import { ask } from './ask.ts'
import { borrowRig } from './borrow-rig.ts'
import type { Rig, RigOptions } from './service.ts'
import { waitUntil } from './wait-until.ts'

const Created = z.object({
  transactionId: z.string(),
  payments: z.array(z.object({ id: z.string() })),
})
const Ledger = z.object({
  data: z.array(z.object({ requestId: z.string(), paymentId: z.string(), amount: z.string() })),
})
const Calls = z.object({
  data: z.array(z.object({ command: z.string(), requestId: z.string().nullish() })),
})

export type RefundAnswer = { status: number; headers: Headers; body: RefundView; problem: unknown }

export type RefundRig = Awaited<ReturnType<typeof startRefundRig>>

/** Schedules short enough to play a refund's whole life in a test. */
export const QUICK_REFUNDS = {
  REFUND_BACKOFF_MS: '50',
  REFUND_BACKOFF_MAX_MS: '200',
  REFUND_RESEND_AFTER_MS: '100',
  GATEWAY_TIMEOUT_MS: '400',
}

/** For tests that count calls: no call times out on a busy machine. */
export const PATIENT_REFUNDS = { ...QUICK_REFUNDS, GATEWAY_TIMEOUT_MS: '5000' }

/** Starts a service and a gateway that refuses only repeated request ids: the service's own checks are tested. */
export async function startRefundRig(options: RigOptions = {}) {
  const rig = await borrowRig({
    ...options,
    settings: { ...QUICK_REFUNDS, ...options.settings },
    refundMode: options.refundMode ?? { guardsBalance: false, settleMs: 50 },
  })
  const readRefund = async (refundId: string): Promise<RefundView> => {
    const response = await rig.api(`/v1/refunds/${refundId}`)
    return Refund.strict().parse(await response.json())
  }
  return {
    ...rig,
    readRefund,
    /** Creates a payment at the gateway, and waits until the service knows it. */
    async pay({ amount = '100', paymentMethod = 'CC', status = 'SUCCESS', ...more }: Given = {}) {
      const created = Created.parse(
        await rig.control('POST', '/transactions', {
          payments: [{ ...more, amount, paymentMethod, status }],
        }),
      )
      const id = created.payments[0]?.id ?? ''
      const known = async () => (await rig.api(`/v1/payments/${id}`)).status === 200
      await waitUntil(known, { what: `payment ${id}` })
      return { id, transactionId: created.transactionId }
    },
    /** Requests a refund, with a new idempotency key unless one is given. */
    refund: (paymentId: string, body?: unknown, key?: string) =>
      requestRefund(rig, paymentId, body, key),
    /** @param merchantCode the account, where several have a payment with this id */
    async payment(paymentId: string, merchantCode?: string) {
      const query = merchantCode === undefined ? '' : `?merchantCode=${merchantCode}`
      const response = await rig.api(`/v1/payments/${paymentId}${query}`)
      return Payment.strict().parse(await response.json())
    },
    /** Waits until the refund is succeeded, failed or needs_review. */
    async untilEnded(refundId: string): Promise<RefundView> {
      const ends = ['succeeded', 'failed', 'needs_review']
      await waitUntil(async () => ends.includes((await readRefund(refundId)).status), {
        timeoutMs: 80_000,
        what: `the end of refund ${refundId}`,
      })
      return await readRefund(refundId)
    },
    /** Holds refunds, as `refund/…`, `payment/…` or `merchant/…`. */
    async hold(target: string, reason: string): Promise<void> {
      const { status } = await rig.api(`/v1/holds/${target}`, {
        method: 'PUT',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ reason }),
      })
      if (status !== 200) throw new Error(`${status} for the hold of ${target}`)
    },
    /** Amounts that moved at the gateway, oldest first. */
    async moved(paymentId: string): Promise<string[]> {
      const { data } = Ledger.parse(await rig.control('GET', '/ledger'))
      return data.filter((one) => one.paymentId === paymentId).map(({ amount }) => amount)
    },
    /** How many REFUND calls with this request id reached the gateway. */
    async sent(refundId: string): Promise<number> {
      const { data } = Calls.parse(await rig.control('GET', '/calls?command=REFUND'))
      return data.filter((one) => one.requestId === refundId).length
    },
  }
}

type Given = { id?: string; amount?: string; paymentMethod?: string; status?: string }

async function requestRefund(
  rig: Rig,
  paymentId: string,
  body: unknown = {},
  idempotencyKey: string = randomUUID(),
): Promise<RefundAnswer> {
  const response = await ask({ url: rig.service.url, idempotencyKey }, paymentId, body)
  const json: unknown = await response.json()
  const refund = Refund.strict().safeParse(json)
  return {
    status: response.status,
    headers: response.headers,
    problem: json,
    get body() {
      if (!refund.success) throw new Error(`no refund: ${JSON.stringify(json)}`)
      return refund.data
    },
  }
}
