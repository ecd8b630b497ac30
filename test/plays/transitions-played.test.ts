import { describe, expect, it } from 'vitest'
import { syncDue } from '../../src/sync/sync-due.ts'
import { CONFIRM_MS, RESEND_MS, RESOLVE_MS } from '../support/refund-lab.ts'
import { useFreshLab, useRefundLab } from '../support/use-started.ts'

const lab = useFreshLab()

const FAULTS = ['acceptThenReset', 'reset']

it('a refund that was refused on the resend after an attempt without an answer never fails by that code', async () => {
  const { payment, refundId } = await lab.openSent('acceptThenReset')
  await lab.fault('code', { code: 33 })
  await lab.age(refundId, RESEND_MS)
  await lab.pass(payment)
  await lab.expectRefund(refundId, 'unknown', { attempts: 2, refusedCode: null })
  await lab.age(refundId, CONFIRM_MS)
  await lab.fault('code', { code: 33 })
  await lab.pass(payment)
  expect(await lab.status(refundId)).toBe('unknown')
})

describe('a refund without an answer', () => {
  it.each(FAULTS)('after %s is sent again only later, under the same id', async (kind) => {
    const { payment, refundId } = await lab.openSent(kind)
    await lab.expectRefund(refundId, 'unknown', { unanswered: true })
    await lab.pass(payment)
    expect(await lab.sent(refundId)).toBe(1)
    await lab.age(refundId, RESEND_MS)
    await lab.pass(payment)
    expect(await lab.sent(refundId)).toBe(2)
    await lab.passSettled(payment, refundId)
    expect(await lab.status(refundId)).toBe('succeeded')
    expect(await lab.moved(payment.id)).toEqual(['30'])
  })

  it('is not sent again once a delta shows it, nor when the query has no answer', async () => {
    const { payment, refundId } = await lab.openSent('acceptThenReset')
    await lab.age(refundId, RESEND_MS)
    await lab.fault('http500', { command: 'QUERY_PT' })
    await lab.pass(payment)
    expect(await lab.sent(refundId)).toBe(1)
    await lab.passSettled(payment, refundId)
    await lab.expectRefund(refundId, 'succeeded', { sent: 1 })
  })

  it('is not sent again beside an unmatched delta', async () => {
    const { payment, refundId } = await lab.openSent('reset')
    await lab.show(payment, '10')
    await lab.age(refundId, RESEND_MS)
    await lab.pass(payment)
    expect(await lab.sent(refundId)).toBe(1)
    expect(await lab.disagreements(payment)).toEqual(['unexplained_growth'])
  })

  it('ends in review, still reserved, when its outcome stays unknown', async () => {
    const { payment, refundId } = await lab.openSent('reset')
    await lab.age(refundId, RESOLVE_MS)
    await lab.pass(payment)
    await lab.expectRefund(refundId, 'needs_review', { sent: 1, left: '70' })
  })
})

it('an accepted refund that does not end stays accepted, and is a disagreement once', async () => {
  const { payment, refundId } = await lab.openSent()
  expect(await lab.status(refundId)).toBe('accepted')
  await lab.age(refundId, RESOLVE_MS)
  await lab.pass(payment)
  await lab.pass(payment)
  expect(await lab.status(refundId)).toBe('accepted')
  expect(await lab.disagreements(payment)).toEqual(['refund_without_end'])
  expect(await lab.sent(refundId)).toBe(1)
})

describe('before sending', () => {
  it('a query without an answer leaves the refund pending, and nothing is sent', async () => {
    const { refundId } = await lab.openSent('http500', { command: 'QUERY_PT' })
    // One step of its backoff: it is not queried again immediately, without end.
    await lab.expectRefund(refundId, 'pending', { attempts: 0, polls: 1, sent: 0 })
  })

  it('a payment that has failed since fails the refund', async () => {
    const { payment, refundId } = await lab.openAsked()
    await lab.change(payment, { status: 'FAILED' })
    await lab.pass(payment)
    expect(await lab.readRefund(refundId)).toMatchObject({
      status: 'failed',
      failure: { source: 'service', code: 'payment_not_refundable' },
    })
    expect(await lab.sent(refundId)).toBe(0)
  })

  it.each(['CC', 'qr'])(
    'a payment by %j that turns out to be made by QR fails the refund without a receiver',
    async (paymentMethod) => {
      const payment = await lab.open({ paymentMethod })
      const refundId = await lab.ask(payment, '30')
      await lab.change(payment, { paymentMethod: 'QR' })
      await lab.pass(payment)
      expect(await lab.readRefund(refundId)).toMatchObject({
        status: 'failed',
        failure: { source: 'service', code: 'receiver_required' },
      })
      expect(await lab.sent(refundId)).toBe(0)
    },
  )

  it('one that needs a receiver now waits while growth of the payment may be its own', async () => {
    const payment = await lab.open()
    const refundId = await lab.ask(payment, '30')
    await lab.change(payment, { paymentMethod: 'QR' })
    await lab.passShowing(payment, '30')
    await lab.expectRefund(refundId, 'pending', { sent: 0 })
  })
})

it('with refunds disabled no refund without a recorded attempt is sent, and those in progress are resolved', async () => {
  const [waiting, going] = [await lab.open(), await lab.open()]
  await lab.fault('reset')
  const sent = await lab.send(going, '30')
  const unsent = await lab.ask(waiting, '30')
  await lab.age(sent, RESEND_MS)
  await lab.database.sql`update transactions set due_at = now()`
  await lab.database.sql`update refunds set due_at = now()`
  const { ctx } = lab.service
  const off = { ...ctx, config: { ...ctx.config, REFUNDS_ENABLED: false } }
  expect(await syncDue(off)).toBe(2)
  await lab.expectRefund(unsent, 'pending', { sent: 0 })
  await lab.expectRefund(sent, 'accepted', { sent: 2 })
})

describe('where the gateway does not refuse repeated ids', () => {
  const careful = useRefundLab({ settings: { GATEWAY_REFUND_DEDUPES: 'false' } })

  it.each([...FAULTS, 'acceptThenCode'])(
    'a refund is sent once, whatever %s hides',
    async (kind) => {
      await careful.mode({ dedupes: false })
      const payment = await careful.open()
      await careful.fault(kind, { code: 33 })
      const refundId = await careful.send(payment, '30')
      for (const ms of [RESEND_MS, CONFIRM_MS / 2]) {
        await careful.age(refundId, ms)
        await careful.pass(payment)
      }
      const moves = kind !== 'reset'
      if (moves) await careful.settle(refundId)
      await careful.age(refundId, RESOLVE_MS)
      await careful.pass(payment)
      expect((await careful.row(refundId)).status).toBe(moves ? 'succeeded' : 'needs_review')
      expect(await careful.sent(refundId)).toBe(1)
      expect(await careful.moved(payment.id)).toEqual(moves ? ['30'] : [])
    },
  )
})
