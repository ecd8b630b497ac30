import { beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { syncDue } from '../../src/sync/sync-due.ts'
import { ask, expectTaken, payQuietly } from '../support/ask.ts'
import { emptyTables } from '../support/database.ts'
import { PATIENT_REFUNDS } from '../support/refunds.ts'
import { postIpn, signIpn } from '../support/service.ts'
import { syncAgain } from '../support/sync.ts'
import { useRig } from '../support/use-started.ts'
import { waitUntil } from '../support/wait-until.ts'

/** Syncs run only when the test starts them. */
const rig = useRig({ settings: { ...PATIENT_REFUNDS, ROLE: 'web' } })
let url: string
beforeAll(() => {
  url = rig.service.url
})
beforeEach(async () => {
  await emptyTables(rig.database)
  await rig.control('PUT', '/refund-mode', { guardsBalance: false, settleMs: null })
})

async function read(transactionId: string) {
  const response = await rig.api(`/v1/transactions/${transactionId}`)
  const etag = response.headers.get('etag')
  const { final, state, payments } = await rig.transaction(transactionId)
  return { etag, final, state, left: payments[0]?.refundableAmount }
}

/** The gateway notifies that a refund of the payment happened. */
async function notifySuccess(requestId: string, paymentId: string, amount: number) {
  const fields = {
    svc_Command: 'REFUND',
    svc_RequestID: requestId,
    svc_PaymentID: paymentId,
    svc_Amount: amount,
    svc_ResponseCode: 0,
  }
  const { status } = await postIpn(url, signIpn(fields, { exclude: [] }))
  expect(status).toBe(200)
}

const untilHeld = () =>
  waitUntil(() => rig.service.ctx.transactionWaiters.count() === 1, { what: 'a waiting reader' })

describe('a transaction', () => {
  it('is no longer final, has less to refund and another ETag as soon as a refund is accepted', async () => {
    const payment = await payQuietly(rig, { paymentMethod: 'CC' })
    const before = await read(payment.transactionId)
    expect(before).toMatchObject({ final: true, state: 'paid', left: '100' })
    await expectTaken(await ask({ url }, payment.id, { amount: '30' }))
    const after = await read(payment.transactionId)
    expect(after).toMatchObject({ final: false, state: 'paid', left: '70' })
    expect(after.etag).not.toBe(before.etag)
  })

  it('wakes its waiting readers when a refund is accepted', async () => {
    const payment = await payQuietly(rig, { paymentMethod: 'CC' })
    const { etag } = await read(payment.transactionId)
    const headers = { 'if-none-match': etag ?? '' }
    const waiting = rig.api(`/v1/transactions/${payment.transactionId}?wait=20`, { headers })
    await untilHeld()
    await expectTaken(await ask({ url }, payment.id, { amount: '30' }))
    const response = await waiting
    expect(response.status).toBe(200)
    expect(await response.json()).toMatchObject({ final: false })
  })

  it('is final again when the refund is over, and releases what did not move', async () => {
    const payment = await payQuietly(rig, { paymentMethod: 'CC' })
    const refund = await expectTaken(await ask({ url }, payment.id, { amount: '30' }))
    const asked = await read(payment.transactionId)
    await rig.control('PATCH', `/payments/${payment.id}`, { status: 'FAILED' })
    const ended = rig.api(`/v1/refunds/${refund.id}?wait=20`)
    await untilHeld()
    await syncAgain(rig, payment.transactionId)
    const failure = { source: 'service', code: 'payment_not_refundable' }
    expect(await (await ended).json()).toMatchObject({ status: 'failed', failure })
    expect((await read(payment.transactionId)).etag).not.toBe(asked.etag)
    await rig.control('PATCH', `/payments/${payment.id}`, { status: 'SUCCESS' })
    await syncAgain(rig, payment.transactionId)
    expect(await read(payment.transactionId)).toMatchObject({ final: true, left: '100' })
  })

  it('is refunded and final once the gateway shows the refund', async () => {
    const payment = await payQuietly(rig, { paymentMethod: 'CC' })
    const refund = await expectTaken(await ask({ url }, payment.id))
    expect(await syncDue(rig.service.ctx)).toBe(1)
    const accepted = await read(payment.transactionId)
    expect(accepted).toMatchObject({ final: false, state: 'paid', left: '0' })
    await rig.control('POST', `/refunds/${refund.id}/settle`, { outcome: 'success' })
    await syncAgain(rig, payment.transactionId)
    const after = await read(payment.transactionId)
    expect(after).toMatchObject({ final: true, state: 'refunded', left: '0' })
    expect(after.etag).not.toBe(accepted.etag)
  })

  it.each(['does not show it yet', 'has no answer'])(
    'has less to refund, another ETag and news for who waits when a refund made elsewhere is notified and the query %s',
    async (query) => {
      const payment = await payQuietly(rig, { paymentMethod: 'CC' })
      const { etag } = await read(payment.transactionId)
      await notifySuccess('R-PORTAL', payment.id, 30)
      const kind = query === 'has no answer' ? 'http500' : 'delay'
      const fault = { command: 'QUERY_PT', kind, delayMs: 1, times: 1 }
      await rig.control('POST', '/faults', fault)
      const headers = { 'if-none-match': etag ?? '' }
      const waiting = rig.api(`/v1/transactions/${payment.transactionId}?wait=20`, { headers })
      await untilHeld()
      expect(await syncDue(rig.service.ctx)).toBe(1)
      const response = await waiting
      expect(response.status).toBe(200)
      expect(response.headers.get('etag')).not.toBe(etag)
      expect(await response.json()).toMatchObject({ payments: [{ refundableAmount: '70' }] })
    },
  )

  it('notifies a change of one refund at once when the same commit starts to send another', async () => {
    const payment = await payQuietly(rig, { paymentMethod: 'CC' })
    const first = await expectTaken(await ask({ url }, payment.id, { amount: '30' }))
    expect(await syncDue(rig.service.ctx)).toBe(1)
    await expectTaken(await ask({ url }, payment.id, { amount: '20' }))
    await notifySuccess(first.id, payment.id, 30)
    const fault = { command: 'REFUND', kind: 'delay', delayMs: 2000, times: 1 }
    await rig.control('POST', '/faults', fault)
    const ended = rig.api(`/v1/refunds/${first.id}?wait=20`)
    await untilHeld()
    let sent = false
    // Within a burst the next query waits for its gap: without moving it, a fast machine claims nothing.
    const sending = syncAgain(rig, payment.transactionId).then(() => {
      sent = true
    })
    expect(await (await ended).json()).toMatchObject({ status: 'succeeded' })
    expect(sent).toBe(false)
    await sending
  })
})
