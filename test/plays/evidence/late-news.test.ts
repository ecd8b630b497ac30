import { expect, it } from 'vitest'
import { stopSending } from '../../../src/db/installation.ts'
import { confirmRestore } from '../../../src/maintenance/restore.ts'
import { runInTransaction } from '../../../src/platform/postgres/transaction.ts'
import { createLog } from '../../../src/platform/telemetry/log.ts'
import { seedCurrency } from '../../support/ask.ts'
import { AGAINST, done, usePerson } from '../../support/people.ts'
import { RESOLVE_MS } from '../../support/refund-lab.ts'
import { useFreshLab } from '../../support/use-started.ts'

const lab = useFreshLab()
const [anh, mai] = [usePerson(lab), usePerson(lab)]

const age = async (id: string, ms: number) => {
  await lab.age(id, ms)
  await lab.ageRequest(id, ms)
  await lab.database.sql`
    update refunds set success_notified_at = success_notified_at - ${ms} * interval '1 ms'`
}
const restore = () =>
  confirmRestore(
    { ...lab.service.ctx, log: createLog('silent') },
    { id: null, name: 'cli', requestId: null },
  )

it('a refund that was not sent from here, succeeded by its notification and shows in no growth is told', async () => {
  const payment = await lab.open()
  const id = await anh.ask(payment, '30')
  await done(mai.hold(`refund/${id}`))
  await lab.passNotified(payment, id, '30')
  await lab.expectRefund(id, 'succeeded', { matched: false })
  await age(id, 2 * RESOLVE_MS)
  await lab.pass(payment)
  expect(await lab.disagreements(payment)).toEqual(['refund_without_growth'])
})

it('a success that was inferred is judged again by a later undocumented one that its growth fits', async () => {
  const { payment, refundId } = await lab.openInferred('reset')
  await lab.notifyUndocumented(payment)
  await lab.pass(payment)
  await lab.pass(payment)
  expect(await lab.status(refundId)).toBe('needs_review')
})

it('what a restore may have forgotten is not cancelled by whoever asked for it, who could ask again', async () => {
  const payment = await lab.open()
  const id = await anh.ask(payment, '30')
  // Before the operator says that commits are lost nothing is held: nothing is sent at all.
  await runInTransaction(lab.database.sql, (tx) => stopSending(tx, 'the timeline has changed'))
  expect((await anh.cancel(id)).status).toBe(403)
  await restore()
  expect((await anh.cancel(id)).status).toBe(403)
  await done(mai.cancel(id))
})

it('a success that is notified of a cancelled refund, with another amount, reserves the refund again', async () => {
  const { payment, refundId } = await lab.openAsked()
  await done(mai.cancel(refundId))
  await lab.passNotified(payment, refundId, '30', { amount: 25 })
  expect(await lab.disagreements(payment)).toEqual(['notification_mismatch'])
  await lab.expectRefund(refundId, 'needs_review', { left: '70' })
})

it('a refund that a restore may have forgotten fails at no check, and is left to a person', async () => {
  const payment = await lab.open()
  const id = await anh.ask(payment, '30')
  await restore()
  await lab.database.sql`update refunds set cap_currency = 'USD'`
  await seedCurrency(lab.database, payment.transactionId, 'VND')
  await done(mai.release(`refund/${id}`))
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
  await lab.expectRefund(refundId, 'unknown', { refusedCode: '33' })
  await restore()
  await age(refundId, RESOLVE_MS / 2)
  await lab.passTwice(payment, refundId)
  await lab.expectRefund(refundId, 'needs_review', { left: '70' })
})

it('a refund that one person says came back is told where the refunded amount does not fall', async () => {
  const { payment, refundId } = await lab.openSent()
  await lab.passShowing(payment, '30')
  await lab.passNotified(payment, refundId, '30')
  await done(mai.decide(refundId, 'returned'))
  await age(refundId, 30 * 86_400_000)
  await lab.database.sql`update transactions set asked_for_at = now() - interval '30 days'`
  await lab.pass(payment)
  await lab.pass(payment)
  expect(await lab.disagreements(payment)).toEqual(['refund_without_growth'])
})

it('a restore that is repeated keeps the reason of before once', async () => {
  const payment = await lab.open()
  const id = await anh.ask(payment, '30')
  for (let n = 0; n < 3; n += 1) await restore()
  expect((await lab.row(id)).hold?.reason).not.toContain('held before')
})

it('a decision against growth stays, also where one answer more shows less before', async () => {
  const { payment, refundId } = await lab.openSent('reset')
  await lab.passShowing(payment, '30')
  await lab.passShowing(payment, '0')
  await done(mai.decide(refundId, 'failed', AGAINST))
  await lab.pass(payment)
  await lab.passShowing(payment, '30')
  expect(await lab.status(refundId)).toBe('failed')
})
