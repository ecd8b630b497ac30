import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { publishEvents } from '../../src/feed/publish-events.ts'
import { readPage } from '../support/api.ts'
import { RECEIVER } from '../support/ask.ts'
import { readAllEvents } from '../support/feed.ts'
import { type RefundLab, startRefundLab } from '../support/refund-lab.ts'
import { makeTransaction, notifyOf } from '../support/sync.ts'

const ORDER = { merchantCode: 'UFLIYL', orderId: 'DH1', merchantTxnId: 'T1' }
const PAYMENT = { id: 'P-ORDER', transactionId: 'T-ORDER' }

let lab: RefundLab
let refundId = ''
beforeAll(async () => {
  lab = await startRefundLab()
  await makeTransaction(lab, 'T-ORDER', [{ id: 'P-ORDER', amount: '100' }])
  await notifyOf(lab, 'T-ORDER', { svc_OrderID: 'DH1', svc_MerchantTxnID: 'T1' })
  await lab.pass(PAYMENT)
  const { body } = await lab.refund('P-ORDER', { amount: '10', receiver: RECEIVER })
  expect(body).toMatchObject(ORDER)
  refundId = body.id
  await lab.pass(PAYMENT)
  await lab.notify(PAYMENT, crypto.randomUUID(), '20')
  await lab.show(PAYMENT, '60')
  await lab.pass(PAYMENT)
  await publishEvents(lab.service.ctx.db.sql)
})
afterAll(() => lab.stop())

describe('every object names the account and the order it belongs to', () => {
  it.each([
    ['the transaction', () => '/v1/transactions/T-ORDER'],
    ['a payment', () => '/v1/payments/P-ORDER'],
    ['a refund', () => `/v1/refunds/${refundId}`],
  ])('%s', async (_, path) => {
    const text = await (await lab.api(path())).text()
    const object = JSON.parse(text)
    expect(object).toMatchObject(ORDER)
    for (const payment of object.payments ?? []) expect(payment).toMatchObject(ORDER)
  })

  it.each([
    ['transactions', '/v1/transactions'],
    ['payments', '/v1/payments'],
    ['refunds', '/v1/refunds'],
    ['external refunds', '/v1/payments/P-ORDER/external-refunds'],
    ['discrepancies', '/v1/discrepancies'],
  ])('in the list of %s', async (_, path) => {
    const { data } = await readPage(await lab.api(path))
    expect(data.length).toBeGreaterThan(0)
    for (const object of data) expect(object).toMatchObject(ORDER)
  })

  it('every event, and the object in it', async () => {
    const events = await readAllEvents(lab)
    const subjects = new Set(events.map(({ type }) => type.split('.')[0]))
    expect([...subjects].sort()).toEqual(
      ['discrepancy', 'external_refund', 'payment', 'refund', 'transaction'].sort(),
    )
    for (const event of events) {
      expect(event).toMatchObject(ORDER)
      expect(event.data).toMatchObject(ORDER)
    }
  })

  it('a discrepancy that a person notes something on', async () => {
    const { data } = await readPage(await lab.api('/v1/discrepancies'))
    const init = { method: 'POST', headers: { 'content-type': 'application/json' } }
    const path = `/v1/discrepancies/${data[0]?.id}/note`
    const noted = await lab.api(path, { ...init, body: JSON.stringify({ text: 'asked' }) })
    expect(await noted.json()).toMatchObject(ORDER)
  })
})
