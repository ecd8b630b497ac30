import { afterEach, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { emptyTables } from '../../support/database.ts'
import { PUBLISHED_PAYMENTS, PUBLISHED_REFUNDS } from '../../support/published.ts'
import { type Params, recut, sign } from '../../support/recut.ts'
import { MERCHANT, postIpn, type Rig } from '../../support/service.ts'
import { useRefundLab, useRig } from '../../support/use-started.ts'
import { waitUntil } from '../../support/wait-until.ts'

const { 'a payment': PAYMENT = {} } = PUBLISHED_PAYMENTS
const { 'a refund': REFUND = {} } = PUBLISHED_REFUNDS

const Calls = z.object({ data: z.array(z.object({ transactionId: z.string().nullable() })) })

/** What a refund's notification states: a variant with the same is true, whatever else it says. */
const STATED = ['svc_Amount', 'svc_PaymentID', 'svc_RequestID', 'svc_ResponseCode'] as const

const Listed = z.object({ data: z.array(z.unknown()) })

/** Every substring behind the merchant code of a signed payment, as the id of a transaction. */
function cutTransactions(payment: Params, before: string): Params[] {
  const { svc_SecureHash = '', ...members } = sign(payment)
  const heads = ['Amount', 'Command', 'Currency', 'Locale', 'MerchantCode'].map(
    (one) => `svc_${one}`,
  )
  const rest = Object.keys(members)
    .filter((name) => !heads.includes(name))
    .sort()
    .map((name) => members[name])
    .join('')
  const head = Object.fromEntries(heads.map((name) => [name, members[name] ?? '']))
  const cuts = new Map<string, Params>()
  for (let from = 0; from < rest.length; from += 1) {
    for (let to = from + 1; to <= rest.length; to += 1) {
      const id = rest.slice(from, to)
      const around = { [before]: rest.slice(0, from), svc_Version: rest.slice(to) }
      cuts.set(id, { ...head, ...around, svc_TransactionID: id, svc_SecureHash })
    }
  }
  return [...cuts.values()]
}

async function sendAll(url: string, all: readonly Params[]): Promise<Record<number, number>> {
  const statuses: Record<number, number> = {}
  for (let from = 0; from < all.length; from += 25) {
    const answers = await Promise.all(all.slice(from, from + 25).map((one) => sendOne(url, one)))
    for (const { status } of answers) statuses[status] = (statuses[status] ?? 0) + 1
  }
  return statuses
}

/** Sends it again while the database is behind. */
async function sendOne(url: string, one: Params): ReturnType<typeof postIpn> {
  const answer = await postIpn(url, one)
  return answer.status === 503 ? await sendOne(url, one) : answer
}

/** The transactions that the gateway was asked about, once each one that is known here was. */
async function listAsked({ control, database }: Rig): Promise<string[]> {
  const read = async () => {
    const { data } = Calls.parse(await control('GET', '/calls?command=QUERY_PT'))
    return [...new Set(data.flatMap(({ transactionId }) => transactionId ?? []))]
  }
  const known = await database.sql<{ id: string }[]>`
    select transaction_id as id from transactions`
  const isAsked = async () => {
    const asked = await read()
    return known.every(({ id }) => asked.includes(id))
  }
  await waitUntil(isAsked, { what: 'a query about each' })
  return await read()
}

describe('hundreds of transactions out of one signed message', () => {
  const rig = useRig()
  afterEach(() => emptyTables(rig.database))

  it.each([
    ['in published members', 'svc_OrderInfo'],
    ['in a member that no table lists', 'svc_Odd'],
  ])('cut %s: the gateway is asked about two', async (_, before) => {
    const payment = { ...PAYMENT, svc_MerchantTxnID: before }
    const cuts = cutTransactions(payment, before)
    expect(cuts.length).toBeGreaterThan(500)
    const statuses = await sendAll(rig.service.url, cuts)
    expect(statuses).toEqual({ 200: 2, 401: cuts.length - 2 })
    const known = cuts.map((one) => one.svc_TransactionID ?? '')
    const asked = await listAsked(rig)
    expect(asked.filter((id) => known.includes(id))).toHaveLength(2)
  })
})

describe('a refund', () => {
  const lab = useRefundLab()
  const read = async (paymentId: string) => (await lab.api(`/v1/payments/${paymentId}`)).json()

  it('is not ended by 14 variants of its notification, whether they come first or last', async () => {
    for (const isFirst of [true, false]) {
      const payment = await lab.open()
      const refundId = await lab.send(payment, '30')
      const genuine: Params = {
        ...REFUND,
        svc_Amount: '30',
        svc_PaymentID: payment.id,
        svc_RequestID: refundId,
      }
      const all = recut(genuine).filter(
        (one) =>
          one.svc_MerchantCode === MERCHANT.merchantCode &&
          one.svc_Command === 'REFUND' &&
          (one.svc_RequestID ?? '') !== '' &&
          STATED.some((name) => one[name] !== genuine[name]),
      )
      const variants = all.filter((_, n) => n % Math.floor(all.length / 14) === 0).slice(0, 14)
      expect(variants).toHaveLength(14)
      if (isFirst) {
        await sendAll(lab.service.url, variants)
        await lab.pass(payment)
        expect(await lab.row(refundId)).toMatchObject({ status: 'accepted' })
        expect(await read(payment.id)).toMatchObject({ refundableAmount: '70' })
      }
      expect((await postIpn(lab.service.url, sign(genuine))).status).toBe(200)
      await lab.pass(payment)
      expect(await lab.row(refundId)).toMatchObject({ status: 'succeeded', inferred: false })
      if (!isFirst) await sendAll(lab.service.url, variants)
      await lab.pass(payment)
      expect(await lab.row(refundId)).toMatchObject({ status: 'succeeded', inferred: false })
    }
  })

  it('does not fail by the hash of a payment whose payer wrote a failure into the order', async () => {
    const payment = await lab.open()
    const refundId = await lab.send(payment, '30')
    const failure = {
      svc_Amount: '30',
      svc_Command: 'REFUND',
      svc_MerchantCode: MERCHANT.merchantCode,
      svc_OrderID: 'DH1',
      svc_PaymentID: payment.id,
      svc_RequestID: refundId,
      svc_ResponseCode: '33',
      svc_ResponseMsg: 'Failed',
    }
    const written = Object.values(failure).join('')
    const paid = sign({ ...PAYMENT, svc_OrderInfo: written })
    const [before = '', after = ''] = Object.keys(PAYMENT)
      .sort()
      .map((name) => paid[name])
      .join('')
      .split(written)
    const hash = paid.svc_SecureHash ?? ''
    const cut = { ...failure, svc_Aa: before, svc_Version: after, svc_SecureHash: hash }
    expect((await postIpn(lab.service.url, cut)).status).toBe(200)
    await lab.pass(payment)
    expect(await lab.row(refundId)).toMatchObject({ status: 'accepted' })
    expect(await lab.disagreements(payment)).toEqual([])
  })
})

describe('ORDER-100', () => {
  const rig = useRig({ settings: { ROLE: 'web' } })

  it('paid does not show ORDER-1 as paid', async () => {
    const genuine = { ...PAYMENT, svc_OrderID: 'ORDER-100', svc_OrderInfo: ' shoes' }
    const other = { ...sign(genuine), svc_OrderID: 'ORDER-1', svc_OrderInfo: '00 shoes' }
    expect((await postIpn(rig.service.url, sign(genuine))).status).toBe(200)
    expect((await postIpn(rig.service.url, other)).status).toBe(200)
    const list = async (orderId: string) =>
      Listed.parse(await (await rig.api(`/v1/transactions?orderId=${orderId}`)).json()).data.length
    expect([await list('ORDER-100'), await list('ORDER-1')]).toEqual([1, 0])
  })
})
