import { afterEach, describe, expect, it } from 'vitest'
import { computeSecureHash } from '../../../src/gateway/signature.ts'
import { emptyTables } from '../../support/database.ts'
import { PUBLISHED_REFUND, PUBLISHED_REFUND_WITHOUT_RECEIVER } from '../../support/published.ts'
import { type Params, sign, signRequest } from '../../support/recut.ts'
import { MERCHANT, postIpn } from '../../support/service.ts'
import { useRefundLab } from '../../support/use-started.ts'

const lab = useRefundLab()
const literal = useRefundLab({ settings: { GATEWAY_REFUND_HASH_EXCLUDE: 'none' } })
afterEach(() => emptyTables(lab.database))
afterEach(() => emptyTables(literal.database))

describe('the signed text of a request', () => {
  // One that is unknown: the request of another system, or about a payment whose row is lost.
  it.each([
    ['known', '14392', true],
    ['unknown', '15592', false],
  ])(
    'about a payment that is %s reserves nothing as a refund made elsewhere',
    async (_, named, isKnown) => {
      const requested = `${named}1100`
      if (isKnown) await lab.open({ paymentId: requested, amount: '20000' })
      const other = await lab.open({ paymentId: named, amount: '20000' })
      const params = { ...PUBLISHED_REFUND_WITHOUT_RECEIVER, svc_PaymentID: requested }
      const { hash } = signRequest(params)
      const shared = { svc_Amount: '10000', svc_Command: 'REFUND', svc_MerchantCode: 'UFLIYL' }
      // The rest of the id, and the version 1.
      const forged = { ...shared, svc_PaymentID: named, svc_RequestID: '11', svc_ResponseCode: '0' }
      const cut: Params = { ...forged, svc_ResponseMsg: '01', svc_SecureHash: hash }
      expect((await postIpn(lab.service.url, cut)).status).toBe(200)
      await lab.pass(other)
      expect((await lab.payment(named)).refundableAmount).toBe('20000')
      const genuine = sign({ ...forged, svc_ResponseMsg: 'ok' })
      expect((await postIpn(lab.service.url, genuine)).status).toBe(200)
      await lab.pass(other)
      expect((await lab.payment(named)).refundableAmount).toBe('10000')
    },
  )

  it.each([undefined, PUBLISHED_REFUND.svc_Receiver])(
    'with its request id in the hash is no failure of its own refund (receiver %s)',
    async (receiver) => {
      const payment = await literal.open()
      const refundId = await literal.send(payment, '30')
      const params = { svc_Amount: '30', svc_Command: 'REFUND', svc_MerchantCode: 'UFLIYL' }
      const named = { ...params, svc_PaymentID: payment.id, svc_RequestID: refundId }
      const request = {
        ...named,
        svc_Version: '1',
        ...(receiver ? { svc_Receiver: receiver } : {}),
      }
      const hash = computeSecureHash(request, MERCHANT.secret, { prefix: 'svc', exclude: [] })
      const failure = { ...named, svc_ResponseCode: '1', svc_SecureHash: hash }
      const cut = receiver ? { ...failure, svc_PaymentIDx: receiver } : failure
      expect((await postIpn(literal.service.url, cut)).status).toBe(200)
      await literal.pass(payment)
      expect(await literal.row(refundId)).toMatchObject({
        failureCode: null,
        failureNotifiedAt: null,
      })
      const genuine = sign({ ...named, svc_ResponseCode: '1', svc_ResponseMsg: 'Failed' })
      expect((await postIpn(literal.service.url, genuine)).status).toBe(200)
      await literal.pass(payment)
      expect((await literal.row(refundId)).failureCode).toBe('1')
    },
  )
})
