import { afterEach, describe, expect, it } from 'vitest'
import { computeSecureHash } from '../../src/gateway/signature.ts'
import { OTHER, writeMerchantsFile } from '../support/api.ts'
import { emptyTables } from '../support/database.ts'
import { MERCHANT, postIpn, startRig } from '../support/service.ts'
import { useRefundLab, useRig } from '../support/use-started.ts'

const RECEIVED = { status: 200, answer: { respcode: 0, respmsg: 'received' } }

/** Signed as given, whatever the types of the values are. */
function sign(fields: Record<string, unknown>) {
  const params = { svc_MerchantCode: MERCHANT.merchantCode, svc_Command: 'PAY', ...fields }
  const exclude = String(params.svc_Command) === 'REFUND' ? [] : ['TransAmount', 'ExtData']
  const hash = computeSecureHash(params, MERCHANT.secret, { prefix: 'svc', exclude })
  return { ...params, svc_SecureHash: hash }
}

const PAID = {
  svc_TransactionID: 'T-ODD',
  svc_OrderID: 'DH1',
  svc_MerchantTxnID: 'M1',
  svc_Currency: 'VND',
  svc_Amount: 10_000,
  svc_ResponseCode: 0,
}

describe('a payment notification', () => {
  const rig = useRig({ settings: { ROLE: 'web' } })
  afterEach(() => emptyTables(rig.database))
  const send = (fields: Record<string, unknown>) => postIpn(rig.service.url, sign(fields))

  it.each([
    ['svc_OrderID', true, { orderId: null, merchantTxnId: 'M1', currency: 'VND' }],
    ['svc_OrderID', ['DH1'], { orderId: null, merchantTxnId: 'M1', currency: 'VND' }],
    ['svc_OrderID', 7, { orderId: '7', merchantTxnId: 'M1', currency: 'VND' }],
    ['svc_MerchantTxnID', false, { orderId: 'DH1', merchantTxnId: null, currency: 'VND' }],
    ['svc_MerchantTxnID', [1, 2], { orderId: 'DH1', merchantTxnId: null, currency: 'VND' }],
    ['svc_Currency', ['VND'], { orderId: 'DH1', merchantTxnId: 'M1', currency: null }],
    ['svc_Currency', null, { orderId: 'DH1', merchantTxnId: 'M1', currency: null }],
    ['svc_Amount', [10_000], { orderId: 'DH1', merchantTxnId: 'M1', currency: 'VND' }],
    ['svc_Amount', true, { orderId: 'DH1', merchantTxnId: 'M1', currency: 'VND' }],
    ['svc_ResponseCode', ['0'], { orderId: 'DH1', merchantTxnId: 'M1', currency: 'VND' }],
    ['svc_Command', ['PAY'], { orderId: 'DH1', merchantTxnId: 'M1', currency: 'VND' }],
    ['svc_Command', true, { orderId: 'DH1', merchantTxnId: 'M1', currency: 'VND' }],
    ['svc_MerchantCode', true, { merchantCode: 'UFLIYL', orderId: 'DH1', currency: 'VND' }],
    ['svc_MerchantCode', ['UFLIYL'], { merchantCode: 'UFLIYL', orderId: 'DH1' }],
  ])('with %s %j is taken, and only that member is left out', async (name, value, shown) => {
    expect(await send({ ...PAID, [name]: value })).toEqual(RECEIVED)
    expect(await rig.transaction('T-ODD')).toMatchObject({ ...shown, ipnCount: 1 })
  })

  it.each([
    ['240830080146', '240830080146'],
    ['9007199254740993', '9007199254740993'],
    ['1.50', '1.50'],
  ])('with the number %s as its transaction id has the text %s', async (written, id) => {
    const text = JSON.stringify(sign({ ...PAID, svc_TransactionID: written }))
    const body = text.replace(`"svc_TransactionID":"${written}"`, `"svc_TransactionID":${written}`)
    expect(body).not.toBe(text)
    expect(await postIpn(rig.service.url, body)).toEqual(RECEIVED)
    expect(await rig.transaction(id)).toMatchObject({ orderId: 'DH1' })
  })

  it('repeated with its values in other types has the values of either', async () => {
    expect(await send({ ...PAID, svc_OrderID: ['DH1'], svc_Currency: ['VND'] })).toEqual(RECEIVED)
    expect(await send(PAID)).toEqual(RECEIVED)
    const shown = { orderId: 'DH1', currency: 'VND', ipnCount: 2 }
    expect(await rig.transaction('T-ODD')).toMatchObject(shown)
    const [stored] = await rig.database.sql`select currency, deliveries from ipn_events`
    expect(stored).toEqual({ currency: 'VND', deliveries: 2 })
  })
})

describe('with several accounts', () => {
  it('a number is the text of a merchant code; one that is no text is refused', async () => {
    const numeric = { ...OTHER, merchantCode: '70123' }
    const file = writeMerchantsFile([MERCHANT, numeric])
    const settings = { MERCHANTS_FILE: file.path, ROLE: 'web' }
    const rig = await startRig({ settings, sandbox: { accounts: [MERCHANT, numeric] } })
    try {
      const params = { ...PAID, svc_MerchantCode: 70123 }
      const hash = computeSecureHash(params, numeric.secret, { prefix: 'svc', exclude: [] })
      const { url } = rig.service
      expect(await postIpn(url, { ...params, svc_SecureHash: hash })).toEqual(RECEIVED)
      expect(await rig.transaction('T-ODD')).toMatchObject({ merchantCode: '70123' })
      expect(
        await postIpn(url, sign({ ...PAID, svc_MerchantCode: [MERCHANT.merchantCode] })),
      ).toEqual({
        status: 400,
        answer: { respcode: 1, respmsg: 'svc_MerchantCode must be a string or a number' },
      })
    } finally {
      await rig.stop()
      file.remove()
    }
  })
})

describe('a refund notification', () => {
  const lab = useRefundLab()
  afterEach(() => lab.clear())

  /** What is signed stays the same: a copy that a thief of the notification may send first. */
  it.each<[string, (genuine: Record<string, unknown>) => Record<string, unknown>]>([
    ['its amount in a list', (one) => ({ ...one, svc_Amount: [one.svc_Amount] })],
    ['its payment id in a list', (one) => ({ ...one, svc_PaymentID: [one.svc_PaymentID] })],
    ['its code in a list', (one) => ({ ...one, svc_ResponseCode: [one.svc_ResponseCode] })],
    ['its command in a list', (one) => ({ ...one, svc_Command: [one.svc_Command] })],
    ['an empty member before its code', (one) => ({ ...one, svc_RequestIDx: '' })],
  ])('of which a copy with %s comes first settles all the same', async (_, copy) => {
    for (const isBetween of [true, false]) {
      const payment = await lab.open()
      const refundId = await lab.send(payment, '30')
      const genuine = sign({
        svc_Command: 'REFUND',
        svc_RequestID: refundId,
        svc_TransactionID: 'R-1',
        svc_PaymentID: payment.id,
        svc_Amount: 30,
        svc_ResponseCode: 0,
      })
      expect(await postIpn(lab.service.url, copy(genuine))).toEqual(RECEIVED)
      if (isBetween) await lab.pass(payment)
      expect(await postIpn(lab.service.url, genuine)).toEqual(RECEIVED)
      await lab.pass(payment)
      expect(await lab.row(refundId)).toMatchObject({ status: 'succeeded', inferred: false })
    }
  })

  it.each([
    ['an empty member before its code', { svc_RequestIDx: '', svc_RequestIDy: null }],
    ['its command in a list', { svc_Command: ['REFUND'] }],
  ])('with %s settles by itself, and registers no transaction', async (_, odd) => {
    const payment = await lab.open()
    const refundId = await lab.send(payment, '30')
    const ids = { svc_RequestID: refundId, svc_PaymentID: payment.id, svc_TransactionID: 'R-1' }
    const fields = { svc_Command: 'REFUND', ...ids, svc_Amount: 30, svc_ResponseCode: 0 }
    expect(await postIpn(lab.service.url, sign({ ...fields, ...odd }))).toEqual(RECEIVED)
    await lab.pass(payment)
    expect(await lab.row(refundId)).toMatchObject({ status: 'succeeded', inferred: false })
    expect((await lab.api('/v1/transactions/R-1')).status).toBe(404)
  })

  it('with a number as its request id is stored by its text', async () => {
    const fields = { svc_Command: 'REFUND', svc_RequestID: 123, svc_PaymentID: '7' }
    expect(await postIpn(lab.service.url, sign(fields))).toEqual(RECEIVED)
    const rows = await lab.database.sql`select request_id from ipn_events`
    expect(rows).toEqual([{ request_id: '123' }])
  })
})
