import { expect, it } from 'vitest'
import { type Params, sign } from '../support/recut.ts'
import { MERCHANT, postIpn } from '../support/service.ts'
import { useFreshLab } from '../support/use-started.ts'

const lab = useFreshLab()

const makeNotification = (paymentId: string, more: Params = {}) => ({
  svc_Amount: '30',
  svc_Command: 'REFUND',
  svc_MerchantCode: MERCHANT.merchantCode,
  svc_OrderID: 'DH1',
  svc_PaymentID: paymentId,
  svc_RequestID: 'portal-0001',
  svc_ResponseCode: '0',
  svc_ResponseMsg: 'Success',
  svc_TransactionID: '5SYNM1OELUND',
  svc_Version: '1',
  ...more,
})

it('one genuine refund notification reserves at most twice, however often its values are cut anew', async () => {
  const payment = await lab.open()
  const others: (typeof payment)[] = []
  for (const n of [1, 2, 3]) others.push(await lab.open({ paymentId: `${payment.id}-${n}` }))
  const genuine = sign(makeNotification(payment.id, { svc_RequestID: '-1-2-3-portal' }))
  const text = `${payment.id}-1-2-3-portal`
  const cuts = Array.from({ length: 12 }, (_, n) => {
    const at = payment.id.length + n + 1
    return { ...genuine, svc_PaymentID: text.slice(0, at), svc_RequestID: text.slice(at) }
  })
  const { url } = lab.service
  const statuses: number[] = []
  for (const one of [genuine, ...cuts]) statuses.push((await postIpn(url, one)).status)
  expect(statuses).toEqual([200, 200, ...Array.from({ length: 11 }, () => 401)])
  for (const one of [payment, ...others]) await lab.pass(one)
  const rows = await lab.database.sql`select amount from external_refunds`
  expect(rows.length).toBeLessThanOrEqual(2)
})

it('of two readings of an external refund growth shows one, which ends the other', async () => {
  const payment = await lab.open()
  const other = await lab.open({ paymentId: `1${payment.id}` })
  const genuine = sign(makeNotification(payment.id))
  const cut = { ...genuine, svc_OrderID: 'DH', svc_PaymentID: other.id }
  const { url } = lab.service
  for (const one of [genuine, cut]) expect((await postIpn(url, one)).status).toBe(200)
  for (const one of [payment, other]) await lab.pass(one)
  expect([await lab.left(payment), await lab.left(other)]).toEqual(['70', '70'])
  await lab.change(payment, { refundedAmount: '30' })
  for (const one of [payment, other]) await lab.pass(one)
  expect([await lab.left(payment), await lab.left(other)]).toEqual(['70', '100'])
})

it('an old failure with one unsigned member added does not throw a decided success back', async () => {
  const { payment, refundId } = await lab.openAsked()
  const more = { svc_RequestID: refundId, svc_ResponseCode: '33', svc_ResponseMsg: 'Failed' }
  const failure = sign(makeNotification(payment.id, more))
  const { url } = lab.service
  expect((await postIpn(url, failure)).status).toBe(200)
  await lab.pass(payment)
  await lab.database.sql`
    update refunds set status = 'succeeded', matched = false, due_at = null, review = null,
      failure_source = null, failure_reason = null, failure_code = null where refund_id = ${refundId}`
  expect((await postIpn(url, { ...failure, note: 'x' })).status).toBe(200)
  await lab.pass(payment)
  expect(await lab.status(refundId)).toBe('succeeded')
})
