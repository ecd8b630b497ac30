import { afterEach, describe, expect, it } from 'vitest'
import { ask, expectTaken, seedPaid } from '../../support/ask.ts'
import { emptyTables } from '../../support/database.ts'
import { PUBLISHED_PAYMENTS, PUBLISHED_REFUNDS } from '../../support/published.ts'
import { type Params, recut, sign } from '../../support/recut.ts'
import { MERCHANT, postIpn } from '../../support/service.ts'
import { useRig } from '../../support/use-started.ts'

const rig = useRig({ settings: { ROLE: 'web', IPN_KNOWN_MEMBERS: 'BankCode' } })
afterEach(() => emptyTables(rig.database))

const { 'a payment': PAYMENT = {} } = PUBLISHED_PAYMENTS
const { 'a refund': REFUND = {} } = PUBLISHED_REFUNDS

const send = (params: Params) => postIpn(rig.service.url, params)
const readEvents = () => rig.database.sql`
  select hint, recut from ipn_events order by ipn_events.id`
const readNamed = () => rig.database.sql`
  select transaction_id as id, order_id as "orderId", currency from transactions order by 1`

/** test/unit/alternate-readings has every cut; here are those that the database tells apart. */
describe('a signed text that is cut anew', () => {
  const payments = recut(PAYMENT).filter(
    (one) => one.svc_MerchantCode === MERCHANT.merchantCode && (one.svc_TransactionID ?? '') !== '',
  )

  it.each(['genuine first', 'genuine last'])(
    'into payments: one reading is trusted and names its order, %s',
    async (order) => {
      for (const cut of payments.filter((_, n) => n % 20 === 0)) {
        await rig.database.sql`with gone as (delete from ipn_events) delete from transactions`
        const genuine = sign(PAYMENT)
        const [first, second] = order === 'genuine first' ? [genuine, cut] : [cut, genuine]
        expect((await send(first)).status).toBe(200)
        expect((await send(second)).status).toBe(200)
        const events = await readEvents()
        expect(events.map((one) => one.recut)).toEqual([true, true])
        expect(events.filter((one) => !one.hint)).toHaveLength(1)
        const named = await readNamed()
        expect(named.map(({ id }) => id)).toContain(PAYMENT.svc_TransactionID)
        if (first !== genuine) continue
        // Of the second reading nothing is named.
        expect(events[1]?.hint).toBe(true)
        for (const { id, orderId, currency } of named) {
          const own = id === PAYMENT.svc_TransactionID
          expect(orderId).toBe(own ? PAYMENT.svc_OrderID : null)
          expect(currency).toBe(own ? PAYMENT.svc_Currency : null)
        }
      }
    },
  )

  it.each([true, false])(
    'into notifications of a refund of ours: the genuine one is trusted (it comes first: %s)',
    async (isFirst) => {
      const payment = await seedPaid(rig.database, { paymentId: '1439211', amount: '20000' })
      const asked = await ask({ url: rig.service.url }, payment.id, { amount: '10000' })
      const refund = await expectTaken(asked)
      const genuine: Params = { ...REFUND, svc_RequestID: refund.id }
      const cuts = recut(genuine).filter(
        (one) => one.svc_Command === 'REFUND' && (one.svc_RequestID ?? '') !== '',
      )
      const ours = cuts.filter((one) => one.svc_MerchantCode === MERCHANT.merchantCode)
      for (const cut of ours.filter((_, n) => n % 15 === 0)) {
        await rig.database.sql`delete from ipn_events`
        const order = isFirst ? [sign(genuine), cut] : [cut, sign(genuine)]
        for (const one of order) expect((await send(one)).status).toBe(200)
        const rows = await rig.database.sql`
          select request_id = ${refund.id} and payment_id = '1439211' and amount = 10000 as own, hint, code
          from ipn_events order by ipn_events.id`
        expect(rows).toContainEqual({ own: true, hint: false, code: '0' })
        const others = rows.filter(({ own }) => !own)
        if (isFirst) for (const other of others) expect(other.hint).toBe(true)
      }
    },
  )
})

describe('readings of one hash', () => {
  const cuts = recut(PAYMENT).filter(
    (one) =>
      one.svc_MerchantCode === MERCHANT.merchantCode &&
      (one.svc_TransactionID ?? '') !== '' &&
      Object.keys(PAYMENT).every((name) => one[name] !== undefined),
  )

  it('beyond two are refused with 401, and make nothing due', async () => {
    expect((await send(sign(PAYMENT))).status).toBe(200)
    const [second, third, fourth] = cuts
    if (!second || !third || !fourth) throw new Error('too few cuts')
    expect((await send(second)).status).toBe(200)
    for (const one of [third, fourth]) {
      const { status, answer } = await send(one)
      expect(status).toBe(401)
      expect(answer).toEqual({ respcode: 1, respmsg: expect.stringContaining('recut') })
    }
    expect(await readEvents()).toHaveLength(2)
    expect((await send(sign(PAYMENT))).status).toBe(200)
    expect((await send(second)).status).toBe(200)
    expect(await readEvents()).toHaveLength(2)
  })

  it('in members that are not published do not take the place of a published one', async () => {
    const odd = recut(PAYMENT).filter((one) =>
      Object.keys(one).some((name) => name.endsWith('x') && one[name] !== ''),
    )
    const usable = odd.filter((one) => one.svc_TransactionID && one.svc_MerchantCode)
    for (const one of usable.slice(0, 4)) await send(one)
    expect((await send(sign(PAYMENT))).status).toBe(200)
    const events = await readEvents()
    expect(events.filter((one) => !one.hint)).toHaveLength(1)
    expect(await readNamed()).toMatchObject([{ orderId: 'DH1', currency: 'VND' }])
  })

  it('that arrive in the same batch are told apart as well', async () => {
    const [second, third] = cuts
    if (!second || !third) throw new Error('too few cuts')
    const answers = await Promise.all([sign(PAYMENT), second, third].map(send))
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 200, 401])
    expect((await readEvents()).filter((one) => !one.hint)).toHaveLength(1)
  })
})

describe('a member that no table lists', () => {
  it('makes a notification a hint, unless IPN_KNOWN_MEMBERS lists it', async () => {
    await send(sign({ ...PAYMENT, svc_PromoCode: 'X' }))
    expect(await readEvents()).toMatchObject([{ hint: true, recut: false }])
    expect(await readNamed()).toMatchObject([{ orderId: null }])
    await send(sign({ ...PAYMENT, svc_BankCode: 'VCB' }))
    expect(await readEvents()).toMatchObject([{ hint: true }, { hint: false, recut: false }])
    expect(await readNamed()).toMatchObject([{ orderId: 'DH1' }])
  })

  it('and is not signed makes no new notification: an old one is not handled again', async () => {
    const failure = sign({ ...REFUND, svc_ResponseCode: '33', svc_ResponseMsg: 'Failed' })
    await send(failure)
    await rig.database.sql`update ipn_events set handled_at = now()`
    for (const more of [{ note: 'x' }, { other: 'y' }, { svc_PayToken: '' }] as Params[]) {
      expect((await send({ ...failure, ...more })).status).toBe(200)
    }
    const rows = await rig.database.sql`
      select deliveries, handled_at is not null as handled from ipn_events`
    expect(rows).toEqual([{ deliveries: 4, handled: true }])
  })
})

it('of two readings that were stored as trusted in the same instant, only the first stays so', async () => {
  const { svc_OrderID: _, ...rest } = sign(PAYMENT)
  const other = { ...rest, svc_OrderInfo: 'DH1shoes' }
  await send(sign(PAYMENT))
  await rig.database.sql`
    insert into ipn_events (merchant_code, fingerprint, kind, transaction_id, verdict, body, address, deliveries, signed_key, published)
    select merchant_code, sha256('other'), kind, transaction_id, verdict, body, address, 1,
      signed_key, true from ipn_events`
  expect(await send(other)).toMatchObject({ status: 401 })
  expect(await send(sign(PAYMENT))).toMatchObject({ status: 200 })
  expect(await rig.database.sql`select hint, recut from ipn_events order by id`).toEqual([
    { hint: false, recut: true },
    { hint: true, recut: true },
  ])
})
