import { beforeAll, describe, expect, it } from 'vitest'
import { Payment } from '../../../src/payments/view.ts'
import {
  expectInvalid,
  expectProblem,
  readAll,
  readPage,
  seedPayment,
  seedTransaction,
} from '../../support/api.ts'
import { useRig } from '../../support/use-started.ts'

const rig = useRig({ settings: { ROLE: 'web' } })
beforeAll(async () => {
  await seedTransaction(rig.database, { transactionId: 'T-1', state: 'paid' })
})

const list = (query: string) => rig.api(`/v1/payments${query}`)
const ids = (data: Record<string, unknown>[]) => data.map(({ id }) => id)

async function payment(id: string) {
  const response = await rig.api(`/v1/payments/${id}`)
  expect(response.status).toBe(200)
  return Payment.strict().parse(await response.json())
}

describe('a payment', () => {
  it('has exactly the members of the contract, and the same in its transaction and in a list', async () => {
    await seedTransaction(rig.database, { transactionId: 'T-ONE', state: 'paid' })
    await seedPayment(rig.database, {
      paymentId: 'P-ONE',
      transactionId: 'T-ONE',
      amount: '10000.50',
      refundedAmount: '0.5',
      paymentMethod: 'CC',
    })
    const iso = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
    const one = await payment('P-ONE')
    expect(one).toEqual({
      ...{ id: 'P-ONE', transactionId: 'T-ONE', merchantCode: 'UFLIYL' },
      ...{ orderId: null, merchantTxnId: null, status: 'SUCCESS', amount: '10000.50' },
      ...{ refundedAmount: '0.5', refundableAmount: '10000.00', currency: 'VND' },
      ...{ paymentMethod: 'CC', unrecognised: false, missing: false, unreadable: false },
      ...{ hold: null, firstSeenAt: iso, updatedAt: iso, asOf: iso },
    })
    expect((await rig.transaction('T-ONE')).payments).toEqual([one])
    expect((await readPage(await list('?limit=1'))).data).toEqual([one])
  })

  it.each([
    ['SUCCESS', 'QR', '30', '70', false],
    ['SUCCESS', 'QR', '100', '0', false],
    ['SUCCESS', 'QR', '130', '0', false],
    ['SUCCESS', 'NEW', '30', '70', true],
    ['PROCESSING', 'CC', '0', '0', false],
    ['FAILED', 'ATM', '0', '0', false],
    ['success', 'QR', '0', '0', true],
    ['', 'QR', '0', '0', true],
  ])(
    '%s by %s of 100 with %s refunded has a refundable amount of %s; unrecognised: %s',
    async (status, paymentMethod, refundedAmount, refundableAmount, unrecognised) => {
      const paymentId = `P-${status}-${paymentMethod}-${refundedAmount}`
      const facts = { status, paymentMethod, amount: '100', refundedAmount }
      await seedPayment(rig.database, { paymentId, transactionId: 'T-1', ...facts })
      const shown = { ...facts, refundableAmount, unrecognised }
      expect(await payment(paymentId)).toMatchObject(shown)
    },
  )

  it('that is no longer listed is marked missing and not refundable', async () => {
    await seedPayment(rig.database, { paymentId: 'P-GONE', transactionId: 'T-1', missing: true })
    const gone = { status: 'SUCCESS', missing: true, unrecognised: false, refundableAmount: '0' }
    expect(await payment('P-GONE')).toMatchObject(gone)
  })

  it('that is unknown is a 404, and an unknown parameter a 422', async () => {
    await expectProblem(await rig.api('/v1/payments/P-NOBODY'), 404, 'payment_not_found')
    await expectInvalid(await rig.api('/v1/payments/P-GONE?wait=5'), 'wait')
  })
})

describe('the list', () => {
  const at = (second: number) => `2026-03-01T09:00:0${second}.000001Z`
  beforeAll(async () => {
    for (const [second, [status, paymentMethod]] of [
      ['SUCCESS', 'QR'],
      ['FAILED', 'QR'],
      ['SUCCESS', 'CC'],
      ['PROCESSING', 'ODD'],
    ].entries()) {
      await seedPayment(rig.database, {
        paymentId: `P-L${second}`,
        transactionId: 'T-1',
        firstSeenAt: at(second),
        ...(status && paymentMethod ? { status, paymentMethod } : {}),
      })
    }
  })

  const range = `from=${at(0)}&to=2026-03-02T00:00:00Z`
  it.each([
    ['everything, newest first', `?${range}`, ['P-L3', 'P-L2', 'P-L1', 'P-L0']],
    ['status', `?${range}&status=SUCCESS`, ['P-L2', 'P-L0']],
    ['paymentMethod', `?${range}&paymentMethod=QR`, ['P-L1', 'P-L0']],
    ['both', `?${range}&status=SUCCESS&paymentMethod=CC`, ['P-L2']],
    ['from (inclusive) to to (exclusive)', `?from=${at(1)}&to=${at(3)}`, ['P-L2', 'P-L1']],
    ['nothing', `?${range}&paymentMethod=ATM`, []],
  ])('gives %s', async (_, query, wanted) => {
    expect(ids((await readPage(await list(query))).data)).toEqual(wanted)
  })

  it('has every row once over its pages, also with equal times and rows added meanwhile', async () => {
    const firstSeenAt = '2026-02-01T09:00:00Z'
    for (const id of ['A', 'B', 'C', 'D', 'E']) {
      const paymentId = `P-E${id}`
      await seedPayment(rig.database, { paymentId, transactionId: 'T-1', firstSeenAt })
    }
    for (const limit of ['1', '2', '4']) {
      const query = { from: firstSeenAt, to: '2026-02-02T00:00:00Z', limit }
      const all = await readAll(list, query, async (page) => {
        await seedPayment(rig.database, { paymentId: `P-${limit}-${page}`, transactionId: 'T-1' })
        await seedPayment(rig.database, {
          paymentId: `P-Z${limit}-${page}`,
          transactionId: 'T-1',
          firstSeenAt,
        })
      })
      const old = ids(all).filter((id) => !String(id).startsWith('P-Z'))
      expect(old).toEqual(['P-EE', 'P-ED', 'P-EC', 'P-EB', 'P-EA'])
    }
  })

  it.each([
    ['limit', '201'],
    ['cursor', 'nonsense'],
    ['from', 'monday'],
    ['to', '0000-01-01T00:00:00Z'],
    ['status', ''],
    ['paymentMethod', 'a\nb'],
    ['state', 'paid'],
  ])('refuses %s=%s by name', async (name, value) => {
    await expectInvalid(await list(`?${name}=${encodeURIComponent(value)}`), name)
  })
})
