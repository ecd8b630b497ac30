import { afterEach, describe, expect, it } from 'vitest'
import { computeSecureHash } from '../../../src/gateway/signature.ts'
import { emptyTables } from '../../support/database.ts'
import { makeEntry, startListingGateway } from '../../support/listing-gateway.ts'
import { MERCHANT, postIpn } from '../../support/service.ts'
import { useRefundLab, useRig } from '../../support/use-started.ts'
import { matching } from './matching.ts'
import { PAYMENT_ROWS, REFUND_ROWS, type Sent, type SentRow } from './notification-tables.ts'

const PAID = {
  svc_MerchantCode: MERCHANT.merchantCode,
  svc_Command: 'PAY',
  svc_TransactionID: '240830080146NDTISR',
  svc_OrderID: 'DH1',
  svc_MerchantTxnID: 'M1',
  svc_Currency: 'VND',
  svc_Amount: 20_000_000,
  svc_ResponseCode: 0,
  svc_ResponseMsg: 'Success',
  svc_Version: '1',
}

/** The members that are there, signed as the gateway signs them, then changed. */
function build(members: object, { change, after = {} }: Sent): Record<string, unknown> {
  const present = (all: object) =>
    Object.fromEntries(Object.entries(all).filter(([, value]) => value !== undefined))
  const params = present({ ...members, ...change })
  const exclude = params.svc_Command === 'REFUND' ? [] : ['TransAmount', 'ExtData']
  const hash = computeSecureHash(params, MERCHANT.secret, { prefix: 'svc', exclude })
  const signed = { ...params, svc_SecureHash: hash, ...after }
  if (after.svc_SecureHash === 'UPPER') signed.svc_SecureHash = hash.toUpperCase()
  return present(signed)
}

const forms = ({ documented, odd }: SentRow) => [documented, ...odd]

describe('a payment', () => {
  const rig = useRig({ settings: { ROLE: 'web' } })
  afterEach(() => emptyTables(rig.database))

  describe.each(PAYMENT_ROWS)('$row', (row) => {
    it('has at least three odd forms', () => expect(row.odd.length).toBeGreaterThanOrEqual(3))
    it.each(forms(row))('$given', async (form) => {
      const body = build(PAID, form)
      const { status, answer } = await postIpn(rig.service.url, body)
      expect({ status, answer }).toMatchObject({
        status: form.status ?? 200,
        answer: { respcode: form.status === undefined ? 0 : 1 },
      })
      const id = String(body.svc_TransactionID)
      const rows = await rig.database.sql`select transaction_id as id from transactions`
      expect(rows).toEqual(form.status === undefined ? [{ id }] : [])
      if (form.status !== undefined) return
      const gateway = await startListingGateway(rig)
      gateway.list(makeEntry('1439211', { amount: 20_000_000 }))
      await gateway.sync(id)
      expect(await rig.transaction(id)).toMatchObject(matching(form.sees))
    })
  })
})

describe('a refund', () => {
  const lab = useRefundLab()
  afterEach(() => emptyTables(lab.database))

  describe.each(REFUND_ROWS)('$row', (row) => {
    it('has at least three odd forms', () => expect(row.odd.length).toBeGreaterThanOrEqual(3))
    it.each(forms(row))('$given', async (form) => {
      const payment = await lab.open()
      const refundId = await lab.send(payment, '30')
      const notification = {
        svc_MerchantCode: MERCHANT.merchantCode,
        svc_Command: 'REFUND',
        svc_OrderID: 'DH1',
        svc_PaymentID: payment.id,
        svc_RequestID: refundId,
        svc_Amount: 30,
        svc_ResponseCode: 0,
        svc_ResponseMsg: 'Success',
        svc_Version: '1',
      }
      const { status } = await postIpn(lab.service.url, build(notification, form))
      expect(status).toBe(form.status ?? 200)
      await lab.pass(payment)
      const sees = form.sees ?? { status: 'accepted' }
      expect(await lab.readRefund(refundId)).toMatchObject(matching(sees))
    })
  })
})
