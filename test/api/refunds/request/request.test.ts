import { beforeAll, describe, expect, it } from 'vitest'
import type { RefundView } from '../../../../src/refunds/view.ts'
import { expectInvalid, expectProblem } from '../../../support/api.ts'
import { ask, expectRefused, expectTaken, RECEIVER, seedPaid } from '../../../support/ask.ts'
import { KEY, withConfig } from '../../../support/service.ts'
import { useRig } from '../../../support/use-started.ts'

/** A service without background work: requested refunds stay pending. */
const rig = useRig({ settings: { ROLE: 'web' } })
let url: string
beforeAll(() => {
  url = rig.service.url
})

describe('a refund request is refused', () => {
  it.each([null, '', '   ', '""'])('without an Idempotency-Key (%j)', async (idempotencyKey) => {
    const { id } = await seedPaid(rig.database)
    const response = await ask({ url, idempotencyKey }, id)
    await expectRefused(response, 400, 'idempotency_key_missing')
  })

  it.each(['a'.repeat(256), 'Schlüssel', '"Schlüssel"'])(
    'with the key %j that cannot be kept',
    async (idempotencyKey) => {
      const { id } = await seedPaid(rig.database)
      await expectInvalid(await ask({ url, idempotencyKey }, id), 'Idempotency-Key')
    },
  )

  it('for an unknown payment', async () => {
    await expectRefused(await ask({ url }, 'NOBODY'), 404, 'payment_not_found')
  })

  it.each([
    { status: 'PROCESSING' },
    { status: 'FAILED' },
    { status: 'SOMETHING' },
    { missing: true },
    { unreadable: true },
  ])('while the payment is %j', async (facts) => {
    const { id } = await seedPaid(rig.database, facts)
    await expectRefused(await ask({ url }, id), 409, 'payment_not_refundable')
  })

  it('above what is left, and reports how much that is', async () => {
    const { id } = await seedPaid(rig.database, { amount: '100', refundedAmount: '0.5' })
    await expectTaken(await ask({ url }, id, { amount: '30' }))
    const problem = await expectRefused(
      await ask({ url }, id, { amount: '69.5001' }),
      409,
      'exceeds_refundable',
    )
    expect(problem.refundableAmount).toBe('69.5')
    await expectTaken(await ask({ url }, id, { amount: '69.5' }))
  })

  it('when nothing is left, also without an amount', async () => {
    const { id } = await seedPaid(rig.database, { amount: '100', refundedAmount: '100' })
    const problem = await expectRefused(await ask({ url }, id), 409, 'exceeds_refundable')
    expect(problem.refundableAmount).toBe('0')
  })

  it('without a receiver when the payment was made by QR', async () => {
    const { id } = await seedPaid(rig.database, { paymentMethod: 'QR' })
    const problem = await expectRefused(await ask({ url }, id), 422, 'receiver_required')
    expect(problem.errors?.map(({ path }) => path)).toEqual(['receiver'])
    await expectTaken(await ask({ url }, id, { receiver: RECEIVER }))
  })

  it('while new refunds are disabled', async () => {
    const { id } = await seedPaid(rig.database)
    const response = await withConfig(rig, { REFUNDS_ENABLED: false }, () => ask({ url }, id))
    await expectRefused(response, 403, 'refunds_disabled')
  })

  it.each([
    ['amount', { amount: true }],
    ['amount', { amount: null }],
    ['amount', { amount: ['10'] }],
    ['amount', { amount: {} }],
    ['reason', { reason: 5 }],
    ['reason', { reason: 'x'.repeat(501) }],
    ['reason', { reason: 'a\u0000b' }],
    ['reason', { reason: 'a\nb' }],
    ['receiver', { receiver: 'somebody' }],
    ['note', { note: 'x' }],
    ['receiver.bank', { receiver: { ...RECEIVER, bank: 'x' } }],
    ['__proto__', '{"__proto__":{"amount":"1"}}'],
    ['body', '[]'],
    ['body', '"10"'],
    ['body', 'null'],
  ])('naming %s for the body %j', async (field, body) => {
    const { id } = await seedPaid(rig.database)
    await expectInvalid(await ask({ url }, id, body), field)
  })

  it.each([
    '{"amount":"10","amount":"20"}',
    '{"amount":10,"am\\u006funt":"10"}',
    '{"receiver":{"accountName":"A","accountNumber":"11111111","accountNumber":"22222222","swiftCode":"ASCBVNVX"}}',
    '{"reason":"a","reason":"b"}',
    '{"amount":',
  ])('with the body %s', async (body) => {
    const { id } = await seedPaid(rig.database)
    await expectProblem(await ask({ url }, id, body), 400, 'invalid_json')
  })
})

describe('the amount of a request', () => {
  it('is all that is left when it is left out', async () => {
    const { id } = await seedPaid(rig.database, { amount: '100.0500', refundedAmount: '0.02' })
    await expectTaken(await ask({ url }, id, { amount: '30' }))
    const rest = await expectTaken(await ask({ url }, id, ''))
    expect(Number(rest.amount)).toBe(70.03)
    const { refundableAmount } = await readPayment(id)
    expect(Number(refundableAmount)).toBe(0)
  })

  it.each([
    ['"10000.50"', '10000.50'],
    ['"999999999999999999.9999"', '999999999999999999.9999'],
    ['900719925474099267.1234', '900719925474099267.1234'],
    ['2.5E2', '250'],
  ])('given as %s is kept exactly', async (given, kept) => {
    const { id } = await seedPaid(rig.database, { amount: '999999999999999999.9999' })
    const refund = await expectTaken(await ask({ url }, id, `{"amount":${given}}`))
    expect(refund.amount).toBe(kept)
  })

  it.each(['0', '0e5', '"0.0000"', '"-1"', '" 10"', '"1e3"', '1.00001', '1e400'])(
    'given as %s is refused by its name',
    async (given) => {
      const { id } = await seedPaid(rig.database, { amount: '999999999999999999' })
      await expectInvalid(await ask({ url }, id, `{"amount":${given}}`), 'amount')
    },
  )

  it('beyond 2^53 is compared with what is left to the last digit', async () => {
    const { id } = await seedPaid(rig.database, { amount: '9007199254740992' })
    const response = await ask({ url }, id, '{"amount":9007199254740993}')
    await expectRefused(response, 409, 'exceeds_refundable')
  })
})

async function readPayment(id: string): Promise<{ refundableAmount: string }> {
  return (await rig.api(`/v1/payments/${id}`)).json() as Promise<{ refundableAmount: string }>
}

describe('an accepted request', () => {
  it.each([
    { amount: '10.50', receiver: RECEIVER, reason: 'returned', onBehalfOf: 'Tran Thi B' },
    { metadata: { longer: 'second', id: 'first' } },
  ])('answers and announces what is stored (%j)', async (body) => {
    const { id } = await seedPaid(rig.database, { merchantTxnId: 'M-1' })
    const taken = await expectTaken(await ask({ url }, id, body))
    const { accountHold: _hold, proof: _proof, ...read } = await readRefund(taken.id)
    expect(taken).toEqual(read)
    const [event] = await rig.database.sql<{ data: RefundView }[]>`
      select data from (select data from event_outbox union all select data from events) as e
      where data ->> 'id' = ${taken.id}`
    expect(event?.data).toEqual({ ...read, receiver: event?.data.receiver })
  })
})

async function readRefund(id: string): Promise<RefundView & { accountHold?: unknown }> {
  const headers = { authorization: `Bearer ${KEY}` }
  const response = await fetch(`${url}/v1/refunds/${id}`, { headers })
  return JSON.parse(await response.text())
}
