import { afterEach, describe, expect, it } from 'vitest'
import { storeNotifications } from '../../../src/ipn/readings.ts'
import type { ReceivedNotification } from '../../../src/ipn/store.ts'
import { syncDue } from '../../../src/sync/sync-due.ts'
import { ask, expectTaken, seedPaid } from '../../support/ask.ts'
import { emptyTables } from '../../support/database.ts'
import { PUBLISHED_PAYMENTS, PUBLISHED_REFUNDS } from '../../support/published.ts'
import { createReader } from '../../support/receive.ts'
import { type Params, recut, sign } from '../../support/recut.ts'
import { MERCHANT, postIpn } from '../../support/service.ts'
import { useRig } from '../../support/use-started.ts'

const rig = useRig({ settings: { ROLE: 'web', IPN_KNOWN_MEMBERS: 'BankCode' } })
afterEach(() => emptyTables(rig.database))

const { 'a payment': PAYMENT = {} } = PUBLISHED_PAYMENTS
const { 'a refund': REFUND = {} } = PUBLISHED_REFUNDS

const send = (params: Params) => postIpn(rig.service.url, params)
const readEvents = () => rig.database.sql`
  select reading, documented, deliveries from ipn_events order by reading`
const readNamed = () => rig.database.sql`
  select transaction_id as id, order_id as "orderId", currency from transactions order by 1`

const receive = createReader()

async function read(params: Params): Promise<ReceivedNotification | undefined> {
  const { arrival } = await receive(JSON.stringify(params))
  return arrival && { ...arrival, address: '192.0.2.1' }
}

async function readGenuine(params: Params): Promise<ReceivedNotification> {
  const genuine = await read(sign(params))
  if (!genuine) throw new Error('the genuine notification was refused')
  return genuine
}

/** Every cut of the text that passes the checks. */
async function readCuts(params: Params): Promise<ReceivedNotification[]> {
  const cuts: ReceivedNotification[] = []
  for (const one of recut(params)) {
    const reading = await read(one)
    if (reading?.merchantCode === MERCHANT.merchantCode) cuts.push(reading)
  }
  return cuts
}

/** In commits of their own, or in one. */
async function store(...batches: ReceivedNotification[][]): Promise<void> {
  for (const batch of batches) {
    const receipts = await storeNotifications(rig.database.sql, batch)
    expect(receipts).toEqual(batch.map(() => ({ status: 'fulfilled', value: 'stored' })))
  }
}

type StoredRow = { id: number; reading: number; code: string | null; subject: string }

/** The rows, with what each is about in every detail. */
const readRows = () => rig.database.sql<StoredRow[]>`
  select id, reading, code, concat_ws('|', kind, transaction_id, request_id, payment_id, order_id,
    merchant_txn_id, currency, amount, code) as subject
  from ipn_events order by reading`

const describeSubject = (one: ReceivedNotification) => {
  const named =
    one.kind === 'payment'
      ? [one.transactionId, one.orderId, one.merchantTxnId, one.currency]
      : [one.requestId, one.paymentId]
  const parts = [one.kind, ...named, one.amount, one.code]
  return parts.filter((part) => part !== undefined).join('|')
}

const NOTHING = [null, null]

/** One text as two notifications in whatever order: of these a property holds for every cut. */
const ORDERS = [
  ['the genuine one first', (genuine, cut) => [[genuine], [cut]]],
  ['the cut first', (genuine, cut) => [[cut], [genuine]]],
  ['both in one batch', (genuine, cut) => [[cut, genuine]]],
] as const satisfies [
  string,
  (
    genuine: ReceivedNotification,
    cut: ReceivedNotification,
  ) => [ReceivedNotification[], ...ReceivedNotification[][]],
][]

describe.each(ORDERS)('a published notification beside each cut of it, %s', (_, order) => {
  it.each(Object.entries({ ...PUBLISHED_PAYMENTS, ...PUBLISHED_REFUNDS }))(
    '%s: at most two ask, one is trusted, and the genuine one is kept',
    async (__, params) => {
      const genuine = await readGenuine(params)
      const cuts = await readCuts(params)
      expect(cuts.length).toBeGreaterThan(60)
      for (const cut of cuts) {
        await rig.database.sql`with gone as (delete from ipn_events) delete from transactions`
        await store(...order(genuine, cut))
        const [rows, named] = await Promise.all([readRows(), readNamed()])
        expect(rows.length).toBeLessThanOrEqual(2)
        expect(rows.filter(({ reading }) => reading === 1)).toHaveLength(1)
        expect(rows.map(({ subject }) => subject)).toContain(describeSubject(genuine))
        const [first] = order(genuine, cut).flat()
        // What is not documented does not take the place of what is, even when it comes first.
        const trusted = cut.documented && first === cut ? cut : genuine
        expect(rows[0]?.subject).toBe(describeSubject(trusted))
        expect(named.length).toBeLessThanOrEqual(genuine.kind === 'payment' ? 2 : 1)
        for (const { id, orderId, currency } of named) {
          const isNamed = trusted.kind === 'payment' && id === trusted.transactionId
          const names = isNamed ? [trusted.orderId ?? null, trusted.currency ?? null] : NOTHING
          // What the cut registered first is named by the commit of its query.
          const isLater = isNamed && trusted !== first && orderId === null
          expect([orderId, currency]).toEqual(isLater ? NOTHING : names)
        }
      }
    },
  )
})

it('the notification of a refund of ours is kept beside any number of cuts, with its result', async () => {
  const payment = await seedPaid(rig.database, { paymentId: '1439211', amount: '20000' })
  const asked = await ask({ url: rig.service.url }, payment.id, { amount: '10000' })
  const refund = await expectTaken(asked)
  const params: Params = { ...REFUND, svc_RequestID: refund.id }
  const genuine = await readGenuine(params)
  const isOwn = (one: ReceivedNotification) =>
    one.kind === 'refund' &&
    one.requestId === refund.id &&
    one.paymentId === '1439211' &&
    one.amount === '10000'
  const cuts = await readCuts(params)
  const receipts = await storeNotifications(rig.database.sql, cuts)
  for (const [place, cut] of cuts.entries()) {
    if (isOwn(cut)) expect(receipts[place]).toEqual({ status: 'fulfilled', value: 'stored' })
  }
  await store([genuine], [genuine])
  const rows = await readRows()
  expect(rows.length).toBeLessThanOrEqual(4)
  const own = rows.filter(({ subject }) => subject === describeSubject(genuine))
  expect(own).toHaveLength(1)
  // Of all that is kept, nothing states another result of the refund.
  const others = rows.filter(({ subject }) => subject.startsWith(`refund|${refund.id}|1439211|`))
  for (const { code } of others) expect([null, '0']).toContain(code)
})

it('readings of one text beyond two are refused with 401, and make nothing due', async () => {
  const cuts = recut(PAYMENT).filter(
    (one) => one.svc_MerchantCode === MERCHANT.merchantCode && one.svc_TransactionID !== '',
  )
  const others = cuts.filter(({ svc_OrderID, svc_OrderInfo }) => {
    return svc_OrderID !== PAYMENT.svc_OrderID && svc_OrderInfo !== PAYMENT.svc_OrderInfo
  })
  const [second, third, fourth] = others
  if (!second || !third || !fourth) throw new Error('too few cuts')
  expect((await send(sign(PAYMENT))).status).toBe(200)
  expect((await send(second)).status).toBe(200)
  const before = await readNamed()
  for (const one of [third, fourth]) {
    const { status, answer } = await send(one)
    expect(status).toBe(401)
    expect(answer).toEqual({ respcode: 1, respmsg: expect.stringContaining('recut') })
  }
  expect((await send(sign(PAYMENT))).status).toBe(200)
  expect((await send(second)).status).toBe(200)
  expect(await readEvents()).toMatchObject([
    { reading: 1, deliveries: 2 },
    { reading: 2, deliveries: 2 },
  ])
  expect(await readNamed()).toEqual(before)
})

it('hundreds of readings in one batch are two, and the documented one names its order', async () => {
  const genuine = await readGenuine(PAYMENT)
  const cuts = await readCuts(PAYMENT)
  const odd = cuts.filter((one) => !one.documented)
  const batch = [...odd, genuine, ...odd, ...cuts]
  const receipts = await storeNotifications(rig.database.sql, batch)
  expect(receipts[odd.length]).toEqual({ status: 'fulfilled', value: 'stored' })
  expect(await readEvents()).toMatchObject([{ reading: 1 }, { reading: 2 }])
  expect(await readNamed()).toContainEqual({
    ...{ id: PAYMENT.svc_TransactionID, orderId: 'DH1', currency: 'VND' },
  })
})

describe('a member that no table lists', () => {
  it('makes a notification one that names nothing, unless IPN_KNOWN_MEMBERS lists it', async () => {
    await send(sign({ ...PAYMENT, svc_PromoCode: 'X' }))
    expect(await readEvents()).toMatchObject([{ reading: 2, documented: false }])
    expect(await readNamed()).toMatchObject([{ orderId: null }])
    await send(sign({ ...PAYMENT, svc_BankCode: 'VCB' }))
    expect(await readEvents()).toMatchObject([{ reading: 1 }, { reading: 2 }])
    await syncDue(rig.service.ctx)
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

it('a body with the byte that separates bodies is stored, and so are its neighbours', async () => {
  const form = (id: string) => {
    const params = sign({ ...PAYMENT, svc_TransactionID: id, svc_OrderInfo: 'a\x1eb' })
    return new URLSearchParams(params).toString().replaceAll('%1E', '\x1e')
  }
  const batch: ReceivedNotification[] = []
  for (const id of ['T-1', 'T-2', 'T-3']) {
    const { arrival } = await receive(form(id), 'form')
    if (arrival) batch.push({ ...arrival, address: '192.0.2.1' })
  }
  await store(batch)
  const rows = await rig.database.sql`
    select transaction_id as id, body from ipn_events order by transaction_id`
  expect(rows.map(({ id }) => id)).toEqual(['T-1', 'T-2', 'T-3'])
  for (const { id, body } of rows) {
    const stored = new URLSearchParams(body)
    expect([stored.get('svc_TransactionID'), stored.get('svc_OrderInfo')]).toEqual([id, 'a\x1eb'])
  }
})
