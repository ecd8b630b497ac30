import { describe, expect, it } from 'vitest'
import { useRefundRig } from '../support/use-started.ts'
import { waitUntil } from '../support/wait-until.ts'

/** A service with background work, against each behaviour of the gateway. */
const rig = useRefundRig({
  settings: { REFUND_CONFIRM_FAILED_MS: '300', REFUND_BACKOFF_MS: '100' },
})

const mode = (ipn: string, settleMs: number | null = 50) =>
  rig.control('PUT', '/refund-mode', { guardsBalance: false, settleMs, ipn })

it.each(['acceptThenHang', 'acceptThenCode', 'reset'])(
  'a refund that meets %s once ends succeeded, with the money moved once',
  async (kind) => {
    await mode('normal')
    const payment = await rig.pay()
    await rig.control('POST', '/faults', { command: 'REFUND', kind, times: 1, code: 33 })
    const { body } = await rig.refund(payment.id, { amount: '30' })
    expect(await rig.untilEnded(body.id)).toMatchObject({ status: 'succeeded' })
    expect(await rig.moved(payment.id)).toEqual(['30'])
  },
)

it.each(['normal', 'early', 'late', 'twice', 'never'])(
  'a gateway whose notifications come %s: the refund succeeds, and the payment shows it',
  async (ipn) => {
    await mode(ipn)
    const payment = await rig.pay()
    const { body } = await rig.refund(payment.id, { amount: '30' })
    expect((await rig.untilEnded(body.id)).status).toBe('succeeded')
    const shown = async () => (await rig.payment(payment.id)).refundedAmount === '30'
    await waitUntil(shown, { what: 'the refunded amount of the payment' })
    // What is only inferred stays reserved.
    const left = ipn === 'never' ? '40' : '70'
    const isLeft = async () => (await rig.payment(payment.id)).refundableAmount === left
    await waitUntil(isLeft, { what: `${left} to be left` })
    expect(await rig.moved(payment.id)).toEqual(['30'])
    expect(await rig.sent(body.id)).toBe(1)
  },
)

describe('several refunds of one payment', () => {
  const slow = useRefundRig({
    settings: { REFUND_BACKOFF_MS: '60000', REFUND_BACKOFF_MAX_MS: '60000' },
    // Growth that is seen before its notification may be that of any, and the others wait for a backoff.
    refundMode: { ipn: 'early' },
  })

  it('are sent one after the other without waiting for a backoff', async () => {
    const payment = await slow.pay()
    const asked = await Promise.all(
      Array.from({ length: 4 }, () => slow.refund(payment.id, { amount: '20' })),
    )
    for (const { body } of asked) expect((await slow.untilEnded(body.id)).status).toBe('succeeded')
    const areMoved = async () => (await slow.moved(payment.id)).length >= asked.length
    await waitUntil(areMoved, { what: 'all of them to move' })
    expect(await slow.moved(payment.id)).toEqual(asked.map(() => '20'))
  })
})
