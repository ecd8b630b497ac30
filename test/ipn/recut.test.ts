import { afterEach, describe, expect, it } from 'vitest'
import { computeSecureHash } from '../../src/gateway/signature.ts'
import { ask, expectTaken, seedPaid } from '../support/ask.ts'
import { emptyTables } from '../support/database.ts'
import { MERCHANT, postIpn } from '../support/service.ts'
import { useRig } from '../support/use-started.ts'

const rig = useRig({ settings: { ROLE: 'web', IPN_KNOWN_MEMBERS: 'BankCode' } })
afterEach(() => emptyTables(rig.database))

type Params = Record<string, string>

/** The members of both notifications as gateways of this family publish them. */
const PAYMENT: Params = {
  svc_Amount: '20000000',
  svc_Command: 'PAY',
  svc_Currency: 'VND',
  svc_Locale: 'vi',
  svc_MerchantCode: MERCHANT.merchantCode,
  svc_MerchantTxnID: 'T1',
  svc_OrderID: 'DH1',
  svc_OrderInfo: 'shoes',
  svc_ResponseCode: '0',
  svc_ResponseMsg: 'Success',
  svc_TransactionID: '240830080146NDTISR',
  svc_Version: '1',
}
const REFUND: Params = {
  svc_Amount: '10000',
  svc_Command: 'REFUND',
  svc_Fee: '0',
  svc_MerchantCode: MERCHANT.merchantCode,
  svc_OrderID: 'DH1',
  svc_PaymentID: '1439211',
  svc_RequestID: 'a68de39f-ea76-43fb-848f-b605b4aaf44e',
  svc_ResponseCode: '0',
  svc_ResponseMsg: 'Success',
  svc_TransactionID: '5SYNM1OELUND',
  svc_Version: '1',
}

function sign(params: Params): Params {
  const exclude = params.svc_Command === 'REFUND' ? [] : ['TransAmount', 'ExtData']
  const hash = computeSecureHash(params, MERCHANT.secret, { prefix: 'svc', exclude })
  return { ...params, svc_SecureHash: hash }
}

/**
 * Cuts the signed text anew at every boundary between two neighbours: each number of characters moves across,
 * in both directions; or a value moves whole to a name that sorts between its neighbours.
 */
function recut(genuine: Params): Params[] {
  const signed = sign(genuine)
  const names = Object.keys(genuine).sort()
  const cuts: Params[] = []
  for (const [index, left] of names.entries()) {
    const right = names[index + 1]
    const text = genuine[left] ?? ''
    const between = `${left}x`
    if (right === undefined || between < right) {
      const { [left]: moved = '', ...rest } = signed
      cuts.push({ ...rest, [between]: moved })
    }
    if (right === undefined) continue
    const both = text + (genuine[right] ?? '')
    for (let at = 0; at <= both.length; at += 1) {
      if (at !== text.length)
        cuts.push({ ...signed, [left]: both.slice(0, at), [right]: both.slice(at) })
    }
  }
  return cuts
}

const send = (params: Params) => postIpn(rig.service.url, params)
const readEvents = () => rig.database.sql`
  select hint, recut from ipn_events order by ipn_events.id`
const readNamed = () => rig.database.sql`
  select transaction_id as id, order_id as "orderId", currency from transactions order by 1`

describe('a signed text cut at every boundary', () => {
  const kept = (params: Params) =>
    params.svc_MerchantCode === MERCHANT.merchantCode && (params.svc_TransactionID ?? '') !== ''

  it('of a payment: one reading is trusted, and the genuine one is stored whichever comes first', async () => {
    const cuts = recut(PAYMENT).filter(kept)
    expect(cuts.length).toBeGreaterThan(80)
    for (const [index, cut] of cuts.entries()) {
      await emptyTables(rig.database)
      const genuine = sign(PAYMENT)
      const [first, second] = index % 2 === 0 ? [genuine, cut] : [cut, genuine]
      expect((await send(first)).status).toBe(200)
      expect((await send(second)).status).toBe(200)
      const events = await readEvents()
      expect(events.map((one) => one.recut)).toEqual([true, true])
      expect(events.filter((one) => !one.hint)).toHaveLength(
        events.every((one) => one.hint) ? 0 : 1,
      )
      if (first === genuine) expect(events[1]?.hint).toBe(true)
      const named = await readNamed()
      const ids = named.map(({ id }) => id)
      expect(ids).toContain(PAYMENT.svc_TransactionID)
      // Of the second reading nothing is named, unless only it has the published form.
      if (first === genuine) {
        const other = named.find(({ id }) => id !== PAYMENT.svc_TransactionID)
        if (other) expect(other).toMatchObject({ orderId: null, currency: null })
        expect(named.find(({ id }) => id === PAYMENT.svc_TransactionID)).toMatchObject({
          orderId: PAYMENT.svc_OrderID,
        })
      }
      expect((await send({ ...cut, svc_OrderIDz: '' })).status).toBe(200)
      expect(await readEvents()).toHaveLength(2)
    }
  }, 120_000)

  it('of a refund of ours: the genuine one is trusted whichever comes first', async () => {
    const payment = await seedPaid(rig.database, { paymentId: '1439211', amount: '20000' })
    const asked = await ask({ url: rig.service.url }, payment.id, { amount: '10000' })
    const refund = await expectTaken(asked)
    const genuine = { ...REFUND, svc_RequestID: refund.id }
    const cuts = recut(genuine).filter(
      (one) =>
        one.svc_MerchantCode === MERCHANT.merchantCode &&
        one.svc_Command === 'REFUND' &&
        (one.svc_RequestID ?? '') !== '',
    )
    expect(cuts.length).toBeGreaterThan(60)
    for (const [index, cut] of cuts.entries()) {
      await rig.database.sql`delete from ipn_events`
      const order = index % 2 === 0 ? [sign(genuine), cut] : [cut, sign(genuine)]
      for (const one of order) expect((await send(one)).status).toBe(200)
      const rows = await rig.database.sql`
        select request_id = ${refund.id} and payment_id = '1439211' and amount = 10000 as own, hint
        from ipn_events order by ipn_events.id`
      expect(rows.some(({ own, hint }) => own && !hint)).toBe(true)
      const others = rows.filter(({ own }) => !own)
      if (index % 2 === 0) for (const other of others) expect(other.hint).toBe(true)
    }
  }, 120_000)
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
    insert into ipn_events (merchant_code, fingerprint, kind, transaction_id, verdict, body, content_type, address,
      headers, deliveries, signed_key, published)
    select merchant_code, sha256('other'), kind, transaction_id, verdict, body, content_type, address, headers, 1,
      signed_key, true from ipn_events`
  expect(await send(other)).toMatchObject({ status: 401 })
  expect(await send(sign(PAYMENT))).toMatchObject({ status: 200 })
  expect(await rig.database.sql`select hint, recut from ipn_events order by id`).toEqual([
    { hint: false, recut: true },
    { hint: true, recut: true },
  ])
})
