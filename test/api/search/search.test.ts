import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import {
  expectInvalid,
  expectProblem,
  OTHER,
  readPage,
  seedPayment,
  seedTransaction,
  withKey,
  writeMerchantsFile,
} from '../../support/api.ts'
import { ask, expectTaken } from '../../support/ask.ts'
import { borrowRig } from '../../support/borrow-rig.ts'
import { addKey, MERCHANT, type Rig } from '../../support/service.ts'

const PAYMENTS = 'key-that-finds-payments-0123456789-0123456789'
const THEIRS = 'key-of-the-other-account-0123456789-0123456789'

const file = writeMerchantsFile([MERCHANT, OTHER])
let rig: Rig
let refundId = ''
beforeAll(async () => {
  rig = await borrowRig({ settings: { ROLE: 'web', MERCHANTS_FILE: file.path } })
  const { database } = rig
  await addKey(database, PAYMENTS, ['payments:read'], MERCHANT.merchantCode)
  await addKey(database, THEIRS, ['payments:read', 'refunds:read'], OTHER.merchantCode)
  await seedTransaction(database, { transactionId: 'T-FIND-1', orderId: 'DH-77', state: 'paid' })
  await database.sql`
    update transactions set merchant_txn_id = 'SHOP-5' where transaction_id = 'T-FIND-1'`
  await seedPayment(database, {
    paymentId: 'P-77001',
    transactionId: 'T-FIND-1',
    amount: '77001.50',
    paymentMethod: 'CC',
  })
  await seedTransaction(database, { transactionId: 'T-FIND-10', orderId: 'DH-770' })
  await seedTransaction(database, { transactionId: 'T-SHOP', orderId: 'Shop-Abc-66001x' })
  await seedTransaction(database, { transactionId: 'T-SIGN', orderId: '#66002' })
  await seedTransaction(database, { transactionId: 'T-BOTH', orderId: '#Web66003' })
  const theirs = { merchantCode: OTHER.merchantCode, transactionId: 'T-FIND-1' }
  await seedTransaction(database, { ...theirs, orderId: 'DH-77' })
  const asked = { url: rig.service.url, query: `?merchantCode=${MERCHANT.merchantCode}` }
  refundId = (await expectTaken(await ask(asked, 'P-77001', { amount: '77' }))).id
  await database.sql`update refunds set gateway_refund_id = '5SYNM1OELUND', notified_reference = 'NOTIFIED-7'`
})
afterAll(async () => {
  await rig.stop()
  file.remove()
})

async function find(q: string, more = '', key?: string) {
  const path = `/v1/search?q=${encodeURIComponent(q)}${more}`
  const { data, nextCursor } = await readPage(
    await rig.api(path, key === undefined ? {} : withKey(key)),
  )
  expect(nextCursor).toBeNull()
  return data
}

const list = (hits: Record<string, unknown>[]) =>
  hits.map(({ type, id, merchantCode, matched }) => [type, id, merchantCode, matched].join(' '))

const OURS = `&merchantCode=${MERCHANT.merchantCode}`

const SHOP = ['transaction T-SHOP UFLIYL orderId']
const BOTH = ['transaction T-BOTH UFLIYL orderId']

describe('an object is found', () => {
  it.each([
    ['a transaction id', 'T-FIND-10', ['transaction T-FIND-10 UFLIYL transactionId']],
    [
      'the beginning of one',
      'T-FIND',
      ['transaction T-FIND-1 UFLIYL transactionId', 'transaction T-FIND-10 UFLIYL transactionId'],
    ],
    [
      'an order id, the exact one first',
      'DH-77',
      ['transaction T-FIND-1 UFLIYL orderId', 'transaction T-FIND-10 UFLIYL orderId'],
    ],
    [
      'an order id in another case, with its sign',
      '#dh-77',
      ['transaction T-FIND-1 UFLIYL orderId', 'transaction T-FIND-10 UFLIYL orderId'],
    ],
    ['an order id of small and large letters', 'shop-abc-66001X', SHOP],
    ['an order id of small and large letters, with a sign', '#SHOP-ABC-66001x', SHOP],
    ['the beginning of one', 'shop-a', SHOP],
    ['the digits of an order id', '770', ['transaction T-FIND-10 UFLIYL orderId']],
    ['the digits of an order id, with a sign', '#770', ['transaction T-FIND-10 UFLIYL orderId']],
    ['an order id without its sign', '66002', ['transaction T-SIGN UFLIYL orderId']],
    ['an order id without its sign, in another case', 'WEB66003', BOTH],
    ['an id of the merchant', 'SHOP-5', ['transaction T-FIND-1 UFLIYL merchantTxnId']],
    ['a payment id', 'P-77001', ['payment P-77001 UFLIYL paymentId']],
    ['an amount, by value', '77001.5', ['payment P-77001 UFLIYL amount']],
    ['an amount as people write it', '77,001.50 VND', ['payment P-77001 UFLIYL amount']],
    ['surrounding spaces', ' P-77001 ', ['payment P-77001 UFLIYL paymentId']],
    ['another spelling', 't-find-1', []],
    ['a pattern', 'T-FIND%', []],
    ['nothing', 'NOBODY', []],
  ])('by %s', async (_, q, wanted) => {
    expect(list(await find(q, OURS))).toEqual(wanted)
  })

  it('a refund, by its id, the beginning of it, the gateway’s id and its amount', async () => {
    const refund = (matched: string) => [`refund ${refundId} UFLIYL ${matched}`]
    expect(list(await find(refundId, OURS))).toEqual(refund('refundId'))
    expect(list(await find(refundId.toUpperCase(), OURS))).toEqual(refund('refundId'))
    expect(list(await find(refundId.slice(0, 9), OURS))).toEqual(refund('refundId'))
    expect(list(await find('5SYNM', OURS))).toEqual(refund('gatewayRefundId'))
    expect(list(await find('NOTIFIED-7', OURS))).toEqual(refund('gatewayReference'))
    expect(list(await find('77.00', OURS))).toEqual(refund('amount'))
  })

  it('with its transaction, whatever it is', async () => {
    for (const q of ['T-FIND-1', 'P-77001', refundId]) {
      const [hit] = await find(q, OURS)
      expect(hit).toMatchObject({ transactionId: 'T-FIND-1' })
    }
  })

  it('by fewer than three characters only if they are all of it', async () => {
    await seedTransaction(rig.database, { transactionId: 'T-SHORT', orderId: 'D7' })
    expect(list(await find('D7', OURS))).toEqual(['transaction T-SHORT UFLIYL orderId'])
    expect(await find('D', OURS)).toEqual([])
    expect(await find('DH', OURS)).toEqual([])
  })

  it('at most `limit` times, the exact ones first', async () => {
    expect(list(await find('DH-77', `${OURS}&limit=1`))).toEqual([
      'transaction T-FIND-1 UFLIYL orderId',
    ])
  })
})

describe('nobody finds', () => {
  it('refunds without refunds:read', async () => {
    expect(await find(refundId, '', PAYMENTS)).toEqual([])
    expect(await find('5SYNM1OELUND', '', PAYMENTS)).toEqual([])
    expect(await find('77.00', '', PAYMENTS)).toEqual([])
  })

  it('objects of another account', async () => {
    expect(list(await find('T-FIND-1', '', THEIRS))).toEqual([
      'transaction T-FIND-1 OTHER1 transactionId',
    ])
    expect(await find('P-77001', '', THEIRS)).toEqual([])
    expect(await find(refundId, '', THEIRS)).toEqual([])
    const all = list(await find('T-FIND-1')).map((hit) => hit.split(' ')[2])
    expect([...new Set(all)].sort()).toEqual(['OTHER1', 'UFLIYL'])
  })

  it('a transaction that the gateway does not know yet', async () => {
    const asked = await rig.api(`/v1/transactions/T-FIND-MISTYPED/sync?${OURS.slice(1)}`, {
      method: 'POST',
    })
    expect(asked.status).toBe(202)
    expect(await find('T-FIND-MISTYPED')).toEqual([])
  })

  it('anything without a text, a scope or a key', async () => {
    await expectInvalid(await rig.api('/v1/search'), 'q')
    await expectInvalid(await rig.api('/v1/search?q='), 'q')
    await expectInvalid(await rig.api('/v1/search?q=%20'), 'q')
    await expectInvalid(await rig.api('/v1/search?q=DH-77&cursor=x'), 'cursor')
    await expectInvalid(await rig.api('/v1/search?q=DH-77&limit=0'), 'limit')
    const none = { headers: { authorization: 'Bearer no-such-key' } }
    await expectProblem(await rig.api('/v1/search?q=DH-77', none), 401, 'unauthenticated')
    const key = 'key-that-reads-cards-only-0123456789-0123456789'
    await addKey(rig.database, key, ['cards:read'])
    await expectProblem(await rig.api('/v1/search?q=DH-77', withKey(key)), 403, 'scope_missing')
  })
})
