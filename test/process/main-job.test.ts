import { expect, it } from 'vitest'
import { postIpn, signIpn } from '../support/service.ts'
import { useRig } from '../support/use-started.ts'
import { waitUntil } from '../support/wait-until.ts'

const rig = useRig()

it('300 copies of one notification at once: all acknowledged, a few spaced queries, one row', async () => {
  await rig.control('POST', '/transactions', {
    transactionId: 'T-BURST',
    payments: [{ amount: '1', paymentMethod: 'QR', status: 'SUCCESS' }],
    ipn: false,
  })
  const notification = signIpn({ svc_TransactionID: 'T-BURST' })
  const began = performance.now()
  // A busy service may answer 503: the gateway sends the notification again.
  const deliver = async (): Promise<void> => {
    const { status } = await postIpn(rig.service.url, notification)
    expect([200, 503]).toContain(status)
    if (status === 503) await deliver()
  }
  await Promise.all(Array.from({ length: 300 }, deliver))
  const isIdle = async () => (await rig.transaction('T-BURST')).sync.status === 'idle'
  await waitUntil(isIdle, { what: 'the last query' })
  const seconds = (performance.now() - began) / 1_000
  const rows = await rig.database.sql`
    select deliveries from ipn_events where transaction_id = 'T-BURST'`
  // One that was refused while its commit ran may be stored all the same, and counts again.
  expect(rows).toHaveLength(1)
  expect(rows[0]?.deliveries).toBeGreaterThanOrEqual(300)
  const [queries] = await rig.database.sql`
    select count(*) as n from gateway_calls where transaction_id = 'T-BURST'`
  expect(queries?.n).toBeGreaterThanOrEqual(1)
  // The distance between queries doubles from 50 ms to a second, and starts again after two quiet seconds:
  // six in the first second, and never more than three a second after it, however slow the machine.
  expect(queries?.n).toBeLessThanOrEqual(6 + 3 * seconds)
  expect((await rig.transaction('T-BURST')).ipnCount).toBe(rows[0]?.deliveries)
})
