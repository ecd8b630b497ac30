import { describe, expect, it } from 'vitest'
import { useRefundRig } from '../support/use-started.ts'
import { waitUntil } from '../support/wait-until.ts'

const rig = useRefundRig()

describe('a refund', () => {
  it('is accepted, sent once, and succeeds by its notification', async () => {
    const payment = await rig.pay({ amount: '100' })
    const { status, body, headers } = await rig.refund(payment.id, {
      amount: '30',
      reason: 'returned',
    })
    expect(status).toBe(202)
    expect(headers.get('location')).toBe(`/v1/refunds/${body.id}`)
    const ended = await rig.untilEnded(body.id)
    expect(ended).toMatchObject({ status: 'succeeded', amount: '30', failure: null })
    // A query may show the money before the notification arrives: then the success is inferred at first.
    const isConfirmed = async () => !(await rig.readRefund(body.id)).inferred
    await waitUntil(isConfirmed, { what: 'the success to be confirmed by its notification' })
    expect(await rig.moved(payment.id)).toEqual(['30'])
    expect(await rig.sent(body.id)).toBe(1)
    const read = await rig.payment(payment.id)
    expect(read).toMatchObject({ refundableAmount: '70' })
  })

  it.each([
    'acceptThenReset',
    'acceptThenHang',
    'acceptThenCode',
    'truncate',
    'reset',
    'http500',
    'garbage',
  ])('that meets %s once ends succeeded, with the money moved once', async (kind) => {
    const payment = await rig.pay({ amount: '100' })
    await rig.control('POST', '/faults', { command: 'REFUND', kind, times: 1, code: 33 })
    const { body } = await rig.refund(payment.id, { amount: '30' })
    expect(await rig.untilEnded(body.id)).toMatchObject({ status: 'succeeded' })
    expect(await rig.moved(payment.id)).toEqual(['30'])
  })
})
