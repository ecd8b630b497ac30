import { describe, expect, it } from 'vitest'
import { reconcileUnqueried } from '../../src/maintenance/rechecks.ts'
import { readItem } from '../support/sync.ts'
import { useFreshLab } from '../support/use-started.ts'

const WEEK_MS = 604_800_000

const lab = useFreshLab()

/** Requests a refund of 30, as long ago as is given. */
async function requestedBefore(ms: number) {
  const { payment, refundId: id } = await lab.openAsked()
  await lab.ageRequest(id, ms)
  return { payment, id }
}

const EXPIRED = { failureSource: 'service', failureReason: 'not_sent_in_time', status: 'failed' }

describe('a refund that was not sent within REFUND_SEND_WITHIN_MS', () => {
  it('fails when the gateway answers again, and is not sent', async () => {
    const { payment, id } = await requestedBefore(60 * 86_400_000)
    await lab.pass(payment)
    expect(await lab.row(id)).toMatchObject(EXPIRED)
    await lab.pass(payment)
    expect(await lab.sent(id)).toBe(0)
    expect(await lab.left(payment)).toBe('100')
    expect(await lab.transaction(payment.transactionId)).toMatchObject({ final: true })
  })

  it('fails while queries have no answer', async () => {
    const { payment, id } = await requestedBefore(WEEK_MS)
    await lab.fault('http500', { command: '*', times: 100 })
    await lab.pass(payment)
    expect(await lab.row(id)).toMatchObject(EXPIRED)
  })

  it('fails while nothing is queried at all, and the event shows why', async () => {
    const { payment, id } = await requestedBefore(WEEK_MS)
    await lab.database.sql`update transactions set due_at = now() + interval '1 hour'`
    expect(await reconcileUnqueried(lab.service.ctx)).toBe(1)
    expect(await lab.row(id)).toMatchObject(EXPIRED)
    expect((await readItem(lab, payment.transactionId)).dueInMs).toBeLessThan(60_000)
    const failure = {
      source: 'service',
      code: 'not_sent_in_time',
      message: `not sent within ${WEEK_MS} ms (REFUND_SEND_WITHIN_MS)`,
    }
    expect((await lab.readRefund(id)).failure).toEqual(failure)
    const data = { status: 'failed', failure }
    expect(await lab.lastEvent(id)).toMatchObject({ type: 'refund.updated', data })
    const [last] = (await lab.timeline(payment)).slice(-1)
    expect(last).toMatchObject({ refundId: id, after: 'failed', cause: failure.message })
    expect(await reconcileUnqueried(lab.service.ctx)).toBe(0)
    await lab.pass(payment)
    expect(await lab.sent(id)).toBe(0)
    expect(await lab.transaction(payment.transactionId)).toMatchObject({ final: true })
  })

  it('is left to the worker that holds its transaction', async () => {
    const { id } = await requestedBefore(WEEK_MS)
    await lab.database.sql`
      update transactions set lease_id = gen_random_uuid(), due_at = now() + interval '1 hour'`
    await reconcileUnqueried(lab.service.ctx)
    await lab.expectRefund(id, 'pending')
  })

  it('succeeds if the gateway has notified its success in the meantime', async () => {
    const { payment, id } = await requestedBefore(WEEK_MS)
    await lab.notify(payment, id, '30')
    await reconcileUnqueried(lab.service.ctx)
    await lab.expectRefund(id, 'succeeded', { attempts: 0 })
  })

  it('is sent a moment before', async () => {
    const { payment, id } = await requestedBefore(WEEK_MS - 60_000)
    expect(await reconcileUnqueried(lab.service.ctx)).toBe(0)
    await lab.pass(payment)
    expect(await lab.sent(id)).toBe(1)
  })

  it('does not fail once an attempt was sent', async () => {
    const { payment, id } = await requestedBefore(0)
    await lab.fault('acceptThenReset')
    await lab.pass(payment)
    await lab.ageRequest(id, 60 * 86_400_000)
    await reconcileUnqueried(lab.service.ctx)
    await lab.pass(payment)
    expect(await lab.status(id)).not.toBe('failed')
  })
})
