import { LosslessNumber, stringify } from 'lossless-json'
import { expect } from 'vitest'
import { z } from 'zod'
import { computeSecureHash } from '../../../src/gateway/signature.ts'
import { makeControl, SHOP } from '../../support/sandbox.ts'

const Payments = z.object({
  svc_ResponseData: z.array(z.object({ id: z.string(), refundedAmount: z.number() })),
})

/** Plays the refunds of a shop, by default of its payment `2` in transaction `T1`, at the sandbox that runs now. */
export function makeRefundCalls(find: () => { url: string }) {
  const control = makeControl(find)
  const common = { svc_MerchantCode: SHOP.merchantCode, svc_Version: '1' }
  const read = async (path: string) => (await control('GET', path)).json()
  const sign = (params: Record<string, unknown>, exclude: string[] = []) => ({
    ...params,
    svc_SecureHash: computeSecureHash(params, SHOP.secret, { prefix: 'svc', exclude }),
  })
  const send = async (params: object) => {
    const answer = await fetch(`${find().url}/api/v1/paygate/svcpay`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: stringify(params) ?? '',
    })
    return answer.json()
  }
  return {
    control,
    read,
    sign,
    send,
    async setMode(mode: object) {
      expect((await control('PUT', '/refund-mode', mode)).status).toBe(200)
    },
    async settle(requestId: string, body: object) {
      expect((await control('POST', `/refunds/${requestId}/settle`, body)).status).toBe(200)
    },
    refund(requestId: string, amount: string, more: object = {}) {
      const params = {
        ...common,
        svc_Command: 'REFUND',
        svc_RequestID: requestId,
        svc_PaymentID: '2',
        svc_Amount: new LosslessNumber(amount),
        ...more,
      }
      return send(sign(params, ['RequestID']))
    },
    async readRefunded(paymentId = '2') {
      const query = { ...common, svc_Command: 'QUERY_PT', svc_TransactionID: 'T1' }
      const { svc_ResponseData: payments } = Payments.parse(await send(sign(query)))
      return payments.find(({ id }) => id === paymentId)?.refundedAmount
    },
    /** Checks all movements of money, oldest first. */
    async expectLedger(...movements: object[]) {
      expect(await read('/ledger')).toMatchObject({ data: movements })
    },
  }
}
