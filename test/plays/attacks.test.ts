import { describe, expect, it, onTestFinished } from 'vitest'
import { requeueUnhandled } from '../../src/maintenance/housekeeping.ts'
import { findInTables, RECEIVER } from '../support/ask.ts'
import { beginPass } from '../support/begin-pass.ts'
import { makeEntry, startListingGateway } from '../support/listing-gateway.ts'
import { MERCHANT, postIpn, signIpn, startTestService } from '../support/service.ts'
import { useFreshLab } from '../support/use-started.ts'

const lab = useFreshLab()

describe('a verified notification', () => {
  it('whose values were split differently so that a failure reads as a success changes nothing', async () => {
    const { payment, refundId } = await lab.openSent('code', { code: 33, times: 1 })
    const genuine = signIpn(
      {
        svc_Command: 'REFUND',
        svc_RequestID: refundId,
        svc_PaymentID: payment.id,
        svc_Amount: 30,
        svc_ResponseCode: 33,
        svc_ResponseMsg: 'Failed',
        svc_TransactionID: '240830080146',
      },
      { exclude: [] },
    )
    const forged = {
      ...genuine,
      svc_RequestIDx: '33Failed24083',
      svc_ResponseCode: '0',
      svc_ResponseMsg: '',
      svc_TransactionID: '080146',
    }
    expect(await postIpn(lab.service.url, forged)).toMatchObject({ status: 200 })
    const [event] = await lab.database.sql`select verdict from ipn_events where kind = 'refund'`
    expect(event?.verdict).toBe('verified')
    await lab.pass(payment)
    expect(await lab.status(refundId)).toBe('unknown')
  })

  it('is applied although the same bytes came before the secret was corrected', async () => {
    const { payment, refundId } = await lab.openSent()
    const body = signIpn(
      {
        svc_Command: 'REFUND',
        svc_RequestID: refundId,
        svc_PaymentID: payment.id,
        svc_Amount: 30,
        svc_ResponseCode: 0,
      },
      { exclude: [] },
    )
    const early = await startTestService(lab.database, lab.sandbox.url, {
      settings: { ROLE: 'web', IPN_SIGNATURE: 'off', GATEWAY_SECRET: 'a secret of last year' },
    })
    onTestFinished(() => early.stop())
    expect((await postIpn(early.url, body)).status).toBe(200)
    await lab.pass(payment)
    expect(await lab.status(refundId)).toBe('accepted')
    expect((await postIpn(lab.service.url, body)).status).toBe(200)
    await lab.pass(payment)
    expect(await lab.status(refundId)).toBe('succeeded')
  })

  it('that neither the intake nor the sync could assign is requeued by maintenance', async () => {
    const payment = await lab.open()
    await lab.database.sql`
      insert into ipn_events (merchant_code, text_hash, kind, payment_id, request_id, amount, code, verdict,
        body, address, deliveries, last_received_at)
      values (${MERCHANT.merchantCode}, gen_random_uuid(), 'refund', ${payment.id}, 'PORTAL', 30, '0', 'verified', '{}',
        '', 1, now() - interval '1 minute')`
    expect(await requeueUnhandled(lab.service.ctx)).toBe(1)
    await lab.pass(payment)
    expect(await lab.database.sql`select request_id from external_refunds`).toHaveLength(1)
    expect(await requeueUnhandled(lab.service.ctx)).toBe(0)
  })
})

it("a refund requested while a query is in flight is not sent on that query's answer", async () => {
  const payment = await lab.open()
  const pass = await beginPass(lab, payment, 'QUERY_PT')
  await lab.refundAtPortal(payment, '60')
  const refundId = await lab.ask(payment, '60')
  await pass.finish()
  await lab.expectRefund(refundId, 'pending', { attempts: 0 })
  await lab.pass(payment)
  await lab.expectRefund(refundId, 'pending', { attempts: 0, sent: 0 })
})

it.each([
  ['123456789', '•••• 6789'],
  // In a replacement text $& would insert the number itself.
  ['12345678$&', '•••• 78$&'],
])(
  "the receiver's account number %s in the gateway's message is not stored",
  async (accountNumber, masked) => {
    const gateway = await startListingGateway(lab)
    const payment = await lab.open({ paymentMethod: 'QR' })
    gateway.list(makeEntry(payment.id, { amount: 100, paymentMethod: 'QR' }))
    const svc_ResponseMsg = `account ${accountNumber} not found`
    const refusal = { svc_ResponseCode: 33, svc_ResponseData: {}, svc_ResponseMsg }
    gateway.answer('REFUND', JSON.stringify(refusal))
    const receiver = { ...RECEIVER, accountNumber }
    const { body } = await lab.refund(payment.id, { amount: '30', receiver })
    await gateway.sync(payment.transactionId)
    expect(await lab.readRefund(body.id)).toMatchObject({
      status: 'unknown',
      failure: { code: '33', message: `account ${masked} not found` },
    })
    expect(await findInTables(lab.database, accountNumber)).toEqual([])
  },
)
