import { describe, expect, it } from 'vitest'
import { postIpn } from '../support/service.ts'
import { type Members, signMembers as sign } from '../support/sign-members.ts'
import { useRefundLab } from '../support/use-started.ts'

/** What order systems see of a refund: a row for each member of its notification; test/unit has all forms. */

const RECEIVED = { status: 200, answer: { respcode: 0, respmsg: 'received' } }

describe('the notification of a refund', () => {
  const lab = useRefundLab()

  /** The genuine notification of a refund that was sent, of 30. */
  async function send() {
    const payment = await lab.open()
    const refundId = await lab.send(payment, '30')
    const members = {
      svc_Command: 'REFUND',
      svc_OrderID: 'DH1',
      svc_PaymentID: payment.id,
      svc_RequestID: refundId,
      svc_Amount: 30,
      svc_ResponseCode: 0,
      svc_ResponseMsg: 'Success',
      svc_Version: '1',
    }
    return { payment, refundId, members }
  }

  const SUCCEEDED = { status: 'succeeded', inferred: false }
  /** It is stored, and leads to a query; nothing is concluded from it. */
  const UNCHANGED = { status: 'accepted', fee: null, gatewayReferenceSource: 'answer' }

  it.each<[string, unknown, object]>([
    ['svc_ResponseCode', 0, SUCCEEDED],
    ['svc_ResponseCode', '0', SUCCEEDED],
    ['svc_ResponseCode', 9, UNCHANGED],
    ['svc_ResponseCode', 99, UNCHANGED],
    ['svc_ResponseCode', '00', UNCHANGED],
    ['svc_ResponseCode', [0], SUCCEEDED],
    ['svc_ResponseCode', null, UNCHANGED],
    ['svc_RequestID', 'portal-1', UNCHANGED],
    ['svc_RequestID', 7, UNCHANGED],
    ['svc_PaymentID', 'P-OTHER', UNCHANGED],
    ['svc_PaymentID', true, UNCHANGED],
    ['svc_Amount', '30.00', SUCCEEDED],
    ['svc_Amount', 31, UNCHANGED],
    ['svc_Amount', [30], SUCCEEDED],
    ['svc_Fee', 3300, { ...SUCCEEDED, fee: '3300' }],
    ['svc_Fee', [1], { ...SUCCEEDED, fee: null }],
    [
      'svc_TransactionID',
      '5SYNM1OELUND',
      { ...SUCCEEDED, gatewayReference: '5SYNM1OELUND', gatewayReferenceSource: 'notification' },
    ],
    ['svc_TransactionID', true, { ...SUCCEEDED, gatewayReferenceSource: 'answer' }],
  ])('with %s %j shows what it is good for', async (name, value, sees) => {
    const { payment, refundId, members } = await send()
    const sent = sign({ ...members, [name]: value })
    expect(await postIpn(lab.service.url, sent)).toEqual(RECEIVED)
    await lab.pass(payment)
    expect(await lab.readRefund(refundId)).toMatchObject(sees)
  })

  /** What is signed stays the same: a copy that a thief of the notification may send first. */
  it.each<[string, (genuine: Members) => Members]>([
    ['its amount in a list', (one) => ({ ...one, svc_Amount: [one.svc_Amount] })],
    ['its payment id in a list', (one) => ({ ...one, svc_PaymentID: [one.svc_PaymentID] })],
    ['its code in a list', (one) => ({ ...one, svc_ResponseCode: [one.svc_ResponseCode] })],
    ['its command in a list', (one) => ({ ...one, svc_Command: [one.svc_Command] })],
    ['an empty member before its code', (one) => ({ ...one, svc_RequestIDx: '' })],
  ])('of which a copy with %s comes first settles all the same', async (_, copy) => {
    for (const isBetween of [true, false]) {
      const { payment, refundId, members } = await send()
      const genuine = sign(members)
      expect(await postIpn(lab.service.url, copy(genuine))).toEqual(RECEIVED)
      if (isBetween) await lab.pass(payment)
      expect(await postIpn(lab.service.url, genuine)).toEqual(RECEIVED)
      await lab.pass(payment)
      expect(await lab.row(refundId)).toMatchObject({ status: 'succeeded', inferred: false })
    }
  })

  it.each([
    ['an empty member before its code', { svc_RequestIDx: '', svc_RequestIDy: null }],
    ['its command in a list', { svc_Command: ['REFUND'] }],
  ])('with %s settles by itself, and registers no transaction', async (_, odd) => {
    const { payment, refundId, members } = await send()
    const reference = `R-${refundId}`
    const sent = sign({ ...members, svc_TransactionID: reference, ...odd })
    expect(await postIpn(lab.service.url, sent)).toEqual(RECEIVED)
    await lab.pass(payment)
    expect(await lab.row(refundId)).toMatchObject({ status: 'succeeded', inferred: false })
    expect((await lab.api(`/v1/transactions/${reference}`)).status).toBe(404)
  })

  it('with a number as its request id is stored by its text', async () => {
    const requestId = Date.now()
    const members = { svc_Command: 'REFUND', svc_RequestID: requestId, svc_PaymentID: '7' }
    expect(await postIpn(lab.service.url, sign(members))).toEqual(RECEIVED)
    const rows = await lab.database.sql`
      select request_id from ipn_events where request_id = ${String(requestId)}`
    expect(rows).toHaveLength(1)
  })
})
