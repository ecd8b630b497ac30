import { afterAll, beforeAll, expect, it } from 'vitest'
import { postIpn, type Rig, signIpn, startRig } from '../support/service.ts'
import { waitUntil } from '../support/wait-until.ts'

let rig: Rig
beforeAll(async () => {
  rig = await startRig()
})
afterAll(() => rig.stop())

it('a payment is acknowledged, asked about, stored and readable', async () => {
  await rig.control('POST', '/transactions', {
    transactionId: 'T-PAID',
    orderId: 'DH1',
    payments: [{ id: '1001', amount: '10000.50', paymentMethod: 'CC', status: 'SUCCESS' }],
  })
  const known = async () => (await rig.api('/v1/transactions/T-PAID')).status === 200
  await waitUntil(known, { what: 'the notification' })
  expect(await rig.transaction('T-PAID', '?wait=10')).toMatchObject({
    state: 'paid',
    final: true,
    orderId: 'DH1',
    paidAmount: '10000.50',
    payments: [{ id: '1001', status: 'SUCCESS', amount: '10000.50', refundableAmount: '10000.50' }],
    sync: { status: 'settled', attempts: 0, lastError: null },
    ipnCount: 1,
  })
})

it('300 copies of one notification at once: 300 × 200, at most 8 queries, one row', async () => {
  await rig.control('POST', '/transactions', {
    transactionId: 'T-BURST',
    payments: [{ amount: '1', paymentMethod: 'QR', status: 'SUCCESS' }],
    ipn: false,
  })
  const notification = signIpn({ svc_TransactionID: 'T-BURST' })
  const answers = await Promise.all(
    Array.from({ length: 300 }, () => postIpn(rig.service.url, notification)),
  )
  expect(answers.filter(({ status }) => status === 200)).toHaveLength(300)
  const settled = async () => (await rig.transaction('T-BURST')).sync.status === 'settled'
  await waitUntil(settled, { what: 'the last query' })
  const rows = await rig.database.sql`
    select deliveries from ipn_events where transaction_id = 'T-BURST'`
  expect(rows.map((row) => row.deliveries)).toEqual([300])
  const [queries] = await rig.database.sql`
    select count(*) as n from gateway_calls where transaction_id = 'T-BURST'`
  expect(queries?.n).toBeGreaterThanOrEqual(1)
  expect(queries?.n).toBeLessThanOrEqual(8)
  expect((await rig.transaction('T-BURST')).ipnCount).toBe(300)
})
