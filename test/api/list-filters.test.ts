import { beforeAll, describe, expect, it } from 'vitest'
import { expectInvalid, readAll, readPage, seedPayment, seedTransaction } from '../support/api.ts'
import { ask, expectTaken } from '../support/ask.ts'
import { useRig } from '../support/use-started.ts'

const rig = useRig({ settings: { ROLE: 'web' } })
const at = (second: number) => `2026-03-01T09:00:0${second}Z`
const refunds: string[] = []

beforeAll(async () => {
  const { database } = rig
  for (const [n, orderId] of ['DH1', 'DH2', 'DH2'].entries()) {
    const transactionId = `T-${n}`
    await seedTransaction(database, { transactionId, orderId, state: 'paid', firstSeenAt: at(n) })
    await database.sql`
      update transactions set merchant_txn_id = ${`M-${n}`} where transaction_id = ${transactionId}`
    for (const [m, amount] of ['100', '100.00', '250.5'].entries()) {
      const facts = { paymentMethod: 'CC', firstSeenAt: at(n + m) }
      await seedPayment(database, { paymentId: `P-${n}${m}`, transactionId, amount, ...facts })
    }
  }
  for (const [n, paymentId] of ['P-00', 'P-10', 'P-20'].entries()) {
    const amount = n === 1 ? '7' : '5'
    const { id } = await expectTaken(await ask({ url: rig.service.url }, paymentId, { amount }))
    refunds.push(id)
    await database.sql`
      update refunds set requested_by = ${n === 2 ? 'console' : 'shop'}, requested_at = ${at(n)}
      where refund_id = ${id}`
  }
})

const ids = async (path: string, name = 'id') =>
  (await readPage(await rig.api(path))).data.map((one) => one[name])

describe('payments', () => {
  it.each([
    ['of an order', 'orderId=DH2&limit=200', ['P-22', 'P-21', 'P-12', 'P-20', 'P-11', 'P-10']],
    ['of a transaction', 'transactionId=T-1', ['P-12', 'P-11', 'P-10']],
    ['of both', 'orderId=DH2&transactionId=T-2', ['P-22', 'P-21', 'P-20']],
    ['of a transaction of another order', 'orderId=DH1&transactionId=T-2', []],
    ['of an amount, by value', 'amount=100.0', ['P-21', 'P-20', 'P-11', 'P-10', 'P-01', 'P-00']],
    ['of an amount of an order', 'orderId=DH2&amount=250.50', ['P-22', 'P-12']],
    ['of an amount in a time', `amount=100&from=${at(2)}`, ['P-21', 'P-20', 'P-11']],
    ['of an amount that none has', 'amount=101', []],
    ['of a status', 'transactionId=T-1&status=FAILED', []],
  ])('%s', async (_, query, wanted) => {
    expect(await ids(`/v1/payments?${query}`)).toEqual(wanted)
  })
})

describe('transactions', () => {
  it.each([
    ['of an order', 'orderId=DH2', ['T-2', 'T-1']],
    ['of a state', `state=paid&to=${at(1)}`, ['T-0']],
    ['of an order in another state', 'orderId=DH2&state=failed', []],
    ['from a microsecond later', 'orderId=DH2&from=2026-03-01T09:00:01.000001Z', ['T-2']],
    ['with an id of the merchant', 'merchantTxnId=M-1', ['T-1']],
    ['of an order with such an id', 'orderId=DH1&merchantTxnId=M-1', []],
    ['with a payment of an amount, each once', 'amount=100', ['T-2', 'T-1', 'T-0']],
    ['of an order with one', 'orderId=DH2&amount=250.5', ['T-2', 'T-1']],
    ['of a state with one', 'amount=100&state=failed', []],
    ['in a time with one', `amount=100&from=${at(1)}&to=${at(2)}`, ['T-1']],
    ['with an amount that no payment has', 'amount=1', []],
  ])('%s', async (_, query, wanted) => {
    expect(await ids(`/v1/transactions?${query}`, 'transactionId')).toEqual(wanted)
  })
})

describe('refunds', () => {
  it.each([
    ['of an order', 'orderId=DH2', [2, 1]],
    ['of a transaction', 'transactionId=T-1', [1]],
    ['of a payment', 'paymentId=P-00', [0]],
    ['of a payment of another order', 'paymentId=P-00&orderId=DH2', []],
    ['requested by', 'requestedBy=shop', [1, 0]],
    ['of an amount, by value', 'amount=5.00', [2, 0]],
    ['of an amount, requested by', 'amount=5&requestedBy=console', [2]],
    ['from, which is included', `from=${at(1)}`, [2, 1]],
    ['to, which is not', `to=${at(1)}`, [0]],
    ['of a status', 'status=pending&requestedBy=shop', [1, 0]],
    ['of another', 'status=succeeded&requestedBy=shop', []],
  ])('%s', async (_, query, wanted) => {
    expect(await ids(`/v1/refunds?${query}`)).toEqual(wanted.map((n) => refunds[n]))
  })
})

it.each([
  ['/v1/payments', { amount: '100' }, 6],
  ['/v1/payments', { orderId: 'DH2' }, 6],
  ['/v1/transactions', { amount: '100' }, 3],
  ['/v1/refunds', { amount: '5' }, 2],
  ['/v1/refunds', { requestedBy: 'shop' }, 2],
])('the pages of %s by %j have every row once', async (path, query, count) => {
  const get = (page: string) => rig.api(`${path}${page}`)
  const whole = await readAll(get, { ...query, limit: '200' })
  expect(whole).toHaveLength(count)
  expect(await readAll(get, { ...query, limit: '1' })).toEqual(whole)
})

describe('a filter is refused', () => {
  it.each([
    ['/v1/payments?status=PAID', 'status', 'SUCCESS, FAILED, PROCESSING'],
    ['/v1/payments?status=success', 'status', 'SUCCESS, FAILED, PROCESSING'],
    ['/v1/payments?paymentMethod=CARD', 'paymentMethod', 'QR, ATM, CC'],
    ['/v1/transactions?state=done', 'state', 'pending, paid, partially_refunded, refunded, failed'],
    ['/v1/refunds?status=sending', 'status', 'awaiting_approval, pending, accepted, unknown'],
    ['/v1/discrepancies?kind=odd', 'kind', 'unexplained_growth'],
    ['/v1/events?types=payment.paid', 'types', 'transaction.paid'],
  ])('%s names the right values', async (path, field, values) => {
    const response = await rig.api(path)
    const text = await response.text()
    expect(response.status).toBe(422)
    expect(text).toContain(field)
    expect(text).toContain(values)
  })

  it.each(['limit', 'orderId'])('with %s twice, as such', async (name) => {
    const response = await rig.api(`/v1/payments?${name}=1&${name}=2`)
    expect((await expectInvalid(response, name)).detail).toBe(`${name}: must be given once`)
  })

  it.each(['abc', '', '-1', '1,000', '1e400', '0x10', '1.23456'])(
    'with the amount %j, which is none',
    async (amount) => {
      for (const path of ['/v1/payments', '/v1/transactions', '/v1/refunds']) {
        const response = await rig.api(`${path}?amount=${encodeURIComponent(amount)}`)
        const problem = await expectInvalid(response, 'amount')
        expect(problem.detail).toContain('must be a decimal like 10000.50')
      }
    },
  )
})

describe('a time with an offset', () => {
  it.each([
    ['encoded', '2026-03-01T16:00:01%2B07:00'],
    ['not encoded', '2026-03-01T16:00:01+07:00'],
    ['not encoded, with a fraction', '2026-03-01T16:00:00.999999+07:00'],
    ['to the west', '2026-03-01T04:00:01-05:00'],
  ])('is understood %s', async (_, from) => {
    expect(await ids(`/v1/refunds?from=${from}`)).toEqual([refunds[2], refunds[1]])
  })

  it.each(['2026-03-01T16:00:01 x', '2026-03-01 16:00:01', '2026-03-01T16:00:01+7'])(
    'is refused as %s',
    async (from) => {
      const problem = await expectInvalid(await rig.api(`/v1/refunds?from=${from}`), 'from')
      expect(problem.detail).toContain('must be a time like 2026-11-21T09:00:00Z')
    },
  )
})
