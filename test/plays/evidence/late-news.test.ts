import { beforeEach, expect, it } from 'vitest'
import { stopSending } from '../../../src/db/installation.ts'
import { confirmRestore } from '../../../src/maintenance/restore.ts'
import { runInTransaction } from '../../../src/platform/postgres/transaction.ts'
import { createLog } from '../../../src/platform/telemetry/log.ts'
import { withKey } from '../../support/api.ts'
import { addPrincipal, type TestKey } from '../../support/approvals.ts'
import { ask, expectTaken } from '../../support/ask.ts'
import { CONFIRM_MS, type LabPayment, RESOLVE_MS } from '../../support/refund-lab.ts'
import { MERCHANT, postIpn, signIpn } from '../../support/service.ts'
import { useFreshLab } from '../../support/use-started.ts'

const lab = useFreshLab()
let [anh, mai]: TestKey[] = []
beforeEach(async () => {
  anh = await addPrincipal(lab.database)
  mai = await addPrincipal(lab.database)
})
const call = (method: string, path: string, who: TestKey | undefined, body: object = {}) =>
  fetch(`${lab.service.url}/v1/${path}`, {
    method,
    ...withKey(who?.key ?? '', { 'content-type': 'application/json' }),
    body: JSON.stringify({ reason: 'ticket 4711', ...body }),
  })
const request = async (payment: LabPayment, who: TestKey | undefined, amount = '30') =>
  (
    await expectTaken(
      await ask({ url: lab.service.url, key: who?.key ?? '' }, payment.id, { amount }),
    )
  ).id
const undocumented = async (payment: LabPayment, amount = 30) => {
  const members = {
    ...{ svc_Command: 'REFUND', svc_RequestID: 'portal-1', svc_PaymentID: payment.id },
    ...{ svc_Amount: amount, svc_ResponseCode: 0, svc_Channel: 'portal' },
  }
  expect((await postIpn(lab.service.url, signIpn(members, { exclude: [] }))).status).toBe(200)
}
const age = async (id: string, ms: number) => {
  await lab.age(id, ms)
  await lab.database.sql`update refunds set requested_at = requested_at - ${ms} * interval '1 ms',
    success_notified_at = success_notified_at - ${ms} * interval '1 ms',
    resolved_at = resolved_at - ${ms} * interval '1 ms'`
}
const restore = () =>
  confirmRestore(
    { ...lab.service.ctx, log: createLog('silent') },
    { id: null, name: 'cli', requestId: null },
  )

it('a refund that was not sent from here, succeeded by its notification and shows in no growth is told', async () => {
  const payment = await lab.open()
  const id = await request(payment, anh)
  expect((await call('PUT', `holds/refund/${id}`, mai)).status).toBe(200)
  await lab.passNotified(payment, id, '30')
  expect(await lab.row(id)).toMatchObject({ status: 'succeeded', matched: false })
  await age(id, 2 * RESOLVE_MS)
  await lab.pass(payment)
  expect(await lab.disagreements(payment)).toEqual(['refund_without_growth'])
})

it('a success that was inferred is judged again by a later undocumented one that its growth fits', async () => {
  const { payment, refundId } = await lab.openSent('reset')
  await lab.passShowing(payment, '30')
  expect(await lab.row(refundId)).toMatchObject({ status: 'succeeded', inferred: true })
  await undocumented(payment)
  await lab.pass(payment)
  await lab.pass(payment)
  expect(await lab.status(refundId)).toBe('needs_review')
})

it('whoever cancels a refund whose payment another has held does not release that hold, also once they have set it again', async () => {
  const payment = await lab.open()
  const id = await request(payment, anh)
  const path = `holds/payment/${payment.id}`
  expect((await call('PUT', path, mai)).status).toBe(200)
  expect((await call('POST', `refunds/${id}/cancellation`, anh)).status).toBe(200)
  expect((await call('PUT', path, anh)).status).toBe(200)
  expect((await call('DELETE', path, anh)).status).toBe(403)
})

it('whoever cancels a refund does not release the hold that another has set on the account since', async () => {
  const payment = await lab.open()
  const id = await request(payment, anh)
  const path = `holds/merchant/${MERCHANT.merchantCode}`
  expect((await call('PUT', path, mai)).status).toBe(200)
  expect((await call('DELETE', path, anh)).status).toBe(403)
  expect((await call('POST', `refunds/${id}/cancellation`, anh)).status).toBe(200)
  expect((await call('DELETE', path, anh)).status).toBe(403)
})

it('whoever waits until their refund is over does not release the hold that another has set', async () => {
  const payment = await lab.open()
  const id = await request(payment, anh)
  const path = `holds/payment/${payment.id}`
  expect((await call('PUT', path, mai)).status).toBe(200)
  await lab.database.sql`update refunds set requested_at = requested_at - interval '8 days'`
  await lab.pass(payment)
  expect(await lab.row(id)).toMatchObject({ failureReason: 'not_sent_in_time' })
  expect((await call('DELETE', path, anh)).status).toBe(403)
})

it.each(['payment', 'merchant'])(
  'whoever asked for a refund that is refused does not release the hold of the %s that another has set since it was sent',
  async (target) => {
    const payment = await lab.open()
    const id = await request(payment, anh)
    await lab.fault('code', { code: 31 })
    await lab.pass(payment)
    const path = `holds/${target}/${target === 'payment' ? payment.id : MERCHANT.merchantCode}`
    expect((await call('PUT', path, mai)).status).toBe(200)
    await lab.age(id, CONFIRM_MS)
    await lab.passTwice(payment, id)
    expect(await lab.status(id)).toBe('failed')
    expect((await call('DELETE', path, anh)).status).toBe(403)
    expect((await call('DELETE', path, mai)).status).toBe(200)
  },
)

it('what a restore may have forgotten is not cancelled by whoever asked for it, who could ask again', async () => {
  const payment = await lab.open()
  const id = await request(payment, anh)
  // Before the operator says that commits are lost nothing is held: nothing is sent at all.
  await runInTransaction(lab.database.sql, (tx) => stopSending(tx, 'the timeline has changed'))
  expect((await call('POST', `refunds/${id}/cancellation`, anh)).status).toBe(403)
  await restore()
  expect((await call('POST', `refunds/${id}/cancellation`, anh)).status).toBe(403)
  expect((await call('POST', `refunds/${id}/cancellation`, mai)).status).toBe(200)
})

it('a success that is notified of a cancelled refund, with another amount, reserves the refund again', async () => {
  const { payment, refundId } = await lab.openAsked()
  expect((await lab.post(`/refunds/${refundId}/cancellation`, { reason: 'x' })).status).toBe(200)
  await lab.passNotified(payment, refundId, '30', { amount: 25 })
  expect(await lab.disagreements(payment)).toEqual(['notification_mismatch'])
  expect([await lab.status(refundId), await lab.left(payment)]).toEqual(['needs_review', '70'])
})

it('a refund that a restore may have forgotten fails at no check, and is left to a person', async () => {
  const payment = await lab.open()
  const id = await request(payment, anh)
  await restore()
  await lab.database.sql`update refunds set cap_currency = 'USD'`
  await lab.database
    .sql`insert into ipn_events (merchant_code, text_hash, kind, transaction_id, currency, verdict, body, address, deliveries)
    values (${MERCHANT.merchantCode}, gen_random_uuid(), 'payment', ${payment.transactionId}, 'VND', 'verified', '{}', '', 1)`
  expect((await call('DELETE', `holds/refund/${id}`, mai)).status).toBe(200)
  await lab.pass(payment)
  expect(await lab.status(id)).toBe('needs_review')
})

it('a failure that is notified after a restore, which may have forgotten an attempt, is left to a person', async () => {
  const { payment, refundId } = await lab.openSent()
  await restore()
  await lab.notify(payment, refundId, '30', { code: 33 })
  await lab.pass(payment)
  expect(await lab.status(refundId)).toBe('needs_review')
})

it('a refusal of what was asked for before a restore, which may have forgotten an attempt, is left to a person', async () => {
  const payment = await lab.open()
  await lab.fault('code', { code: 33 })
  const refundId = await lab.send(payment, '30')
  expect(await lab.row(refundId)).toMatchObject({ status: 'unknown', refusedCode: '33' })
  await restore()
  await age(refundId, RESOLVE_MS / 2)
  await lab.passTwice(payment, refundId)
  expect(await lab.status(refundId)).toBe('needs_review')
  expect(await lab.left(payment)).toBe('70')
})

it('a refund that one person says came back is told where the refunded amount does not fall', async () => {
  const { payment, refundId } = await lab.openSent()
  await lab.passShowing(payment, '30')
  await lab.passNotified(payment, refundId, '30')
  expect(
    (await call('POST', `refunds/${refundId}/resolution`, mai, { outcome: 'returned' })).status,
  ).toBe(200)
  await age(refundId, 30 * 86_400_000)
  await lab.database.sql`update transactions set asked_for_at = now() - interval '30 days'`
  await lab.pass(payment)
  await lab.pass(payment)
  expect(await lab.disagreements(payment)).toEqual(['refund_without_growth'])
})

it('a restore that is repeated keeps the reason of before once', async () => {
  const payment = await lab.open()
  const id = await request(payment, anh)
  for (let n = 0; n < 3; n += 1) await restore()
  expect((await lab.row(id)).hold?.reason).not.toContain('held before')
})

it('a decision against growth stays, also where one answer more shows less before', async () => {
  const { payment, refundId } = await lab.openSent('reset')
  await lab.passShowing(payment, '30')
  await lab.passShowing(payment, '0')
  const body = { outcome: 'failed', againstEvidence: true }
  expect((await call('POST', `refunds/${refundId}/resolution`, mai, body)).status).toBe(200)
  await lab.pass(payment)
  await lab.passShowing(payment, '30')
  expect(await lab.status(refundId)).toBe('failed')
})
