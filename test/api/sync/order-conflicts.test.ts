import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { Discrepancy } from '../../../src/discrepancies/routes.ts'
import { syncDue } from '../../../src/sync/sync-due.ts'
import { readPage } from '../../support/api.ts'
import { emptyTables } from '../../support/database.ts'
import { readRecorded } from '../../support/feed.ts'
import { type Params, sign } from '../../support/recut.ts'
import { MERCHANT, postIpn } from '../../support/service.ts'
import { makeTransaction } from '../../support/sync.ts'
import { useRefundLab } from '../../support/use-started.ts'

const lab = useRefundLab({ settings: { IPN_SIGNATURE: 'optional' } })
let id = ''
beforeEach(async () => {
  id = `T-ORDER-${crypto.randomUUID()}`
  await makeTransaction(lab, id)
})
afterEach(() => emptyTables(lab.database))

const describeOrder = (members: Params): Params => ({
  svc_MerchantCode: MERCHANT.merchantCode,
  svc_Command: 'PAY',
  svc_TransactionID: id,
  svc_ResponseCode: '0',
  ...members,
})
const signed = (members: Params) => sign(describeOrder(members))

async function notify(...notifications: Params[]): Promise<void> {
  const answers = await Promise.all(notifications.map((one) => postIpn(lab.service.url, one)))
  expect(answers.map(({ status }) => status)).toEqual(notifications.map(() => 200))
}

async function readConflicts() {
  const { data } = await readPage(await lab.api('/v1/discrepancies?kind=order_conflict'))
  return data
    .map((one) => Discrepancy.strict().parse(one))
    .map(({ transactionId, ours, theirs }) => ({ transactionId, ours, theirs }))
}

const conflict = (ours: string, theirs: string) => ({
  transactionId: id,
  ours: { source: 'notification', says: ours },
  theirs: { source: 'notification', says: theirs },
})

describe('a signed notification that is cut again between order id and description', () => {
  const genuine = () => signed({ svc_OrderID: 'DH1', svc_OrderInfo: '2 shirts' })
  const shifted = () => ({ ...genuine(), svc_OrderID: 'DH12', svc_OrderInfo: ' shirts' })

  it('does not change the order id, and is an order_conflict and an event that show both', async () => {
    await notify(genuine())
    await notify(shifted())
    await syncDue(lab.service.ctx)
    expect((await lab.transaction(id)).orderId).toBe('DH1')
    expect(await readConflicts()).toEqual([conflict('order id DH1', 'order id DH12')])
    const events = await readRecorded(lab, id)
    expect(events.filter(({ type }) => type === 'discrepancy.found')).toMatchObject([
      { transactionId: id, data: { kind: 'order_conflict', theirs: { says: 'order id DH12' } } },
    ])
  })

  it('is the same conflict when the copy arrives before the genuine one', async () => {
    await notify(shifted())
    await notify(genuine())
    await syncDue(lab.service.ctx)
    expect(await readConflicts()).toEqual([conflict('order id DH12', 'order id DH1')])
  })
})

describe('what a notification names of an order', () => {
  it('is replaced by the first verified notification, and then stays', async () => {
    await notify(describeOrder({ svc_OrderID: 'FORGED', svc_MerchantTxnID: 'M-FORGED' }))
    const read = async () => {
      const { orderId, merchantTxnId, currency } = await lab.transaction(id)
      return { orderId, merchantTxnId, currency }
    }
    expect(await read()).toMatchObject({ orderId: 'FORGED', merchantTxnId: 'M-FORGED' })
    const tag = async () => (await lab.api(`/v1/transactions/${id}`)).headers.get('etag')
    const before = await tag()
    await notify(signed({ svc_OrderID: 'DH1', svc_Currency: 'VND' }))
    await syncDue(lab.service.ctx)
    // All that it is named by comes from one notification.
    expect(await read()).toEqual({ orderId: 'DH1', merchantTxnId: null, currency: 'VND' })
    const after = await tag()
    expect(after).not.toBe(before)
    await notify(describeOrder({ svc_OrderID: 'DH2', svc_Currency: 'USD' }))
    await lab.database.sql`update transactions set due_at = now()`
    await syncDue(lab.service.ctx)
    expect(await read()).toEqual({ orderId: 'DH1', merchantTxnId: null, currency: 'VND' })
    expect(await tag()).toBe(after)
    expect(await readConflicts()).toEqual([])
  })

  it('comes from the verified one of several that are stored at once', async () => {
    const forged = ['A', 'B', 'Z'].map((order) => describeOrder({ svc_OrderID: order }))
    const genuine = signed({ svc_OrderID: 'DH1' })
    await notify(...forged.slice(0, 2), genuine, ...forged.slice(2))
    await syncDue(lab.service.ctx)
    expect((await lab.transaction(id)).orderId).toBe('DH1')
  })

  it('is completed by the commit of a query, also of one that failed', async () => {
    await notify(signed({ svc_OrderInfo: 'names nothing' }))
    await syncDue(lab.service.ctx)
    expect((await lab.transaction(id)).orderId).toBeNull()
    await lab.control('POST', '/faults', { command: 'QUERY_PT', kind: 'http500', times: 1 })
    await notify(signed({ svc_OrderID: 'DH1', svc_Amount: '20' }))
    await lab.database.sql`update transactions set due_at = now()`
    await syncDue(lab.service.ctx)
    expect(await lab.transaction(id)).toMatchObject({
      ...{ orderId: 'DH1', expectedAmount: '20', sync: { status: 'retrying' } },
    })
  })

  it('is not replaced by another verified one: all that differs is one order_conflict', async () => {
    await notify(signed({ svc_OrderID: 'DH1', svc_MerchantTxnID: 'M1', svc_Currency: 'VND' }))
    await notify(signed({ svc_OrderID: 'DH2', svc_MerchantTxnID: 'M2', svc_Currency: 'VND' }))
    await notify(signed({ svc_OrderID: 'DH1', svc_OrderInfo: 'the same order' }))
    await syncDue(lab.service.ctx)
    expect(await lab.transaction(id)).toMatchObject({ orderId: 'DH1', merchantTxnId: 'M1' })
    expect(await readConflicts()).toEqual([
      conflict(
        'order id DH1, merchant transaction id M1',
        'order id DH2, merchant transaction id M2',
      ),
    ])
  })

  it('can be as long as an id may be on both sides of a conflict', async () => {
    const [one, other] = ['ố', 'ộ'].map((letter) => letter.repeat(128))
    const name = (text = '') => signed({ svc_OrderID: text, svc_MerchantTxnID: text })
    await notify(name(one))
    await notify(name(other))
    await syncDue(lab.service.ctx)
    expect(await readConflicts()).toHaveLength(1)
  })
})
