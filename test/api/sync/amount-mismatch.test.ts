import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { syncDue } from '../../../src/sync/sync-due.ts'
import { readPage } from '../../support/api.ts'
import { emptyTables } from '../../support/database.ts'
import { readRecorded } from '../../support/feed.ts'
import { postIpn } from '../../support/service.ts'
import { makeTransaction, notifyOf, syncAgain } from '../../support/sync.ts'
import { useRefundLab } from '../../support/use-started.ts'
import { waitUntil } from '../../support/wait-until.ts'

const lab = useRefundLab({ settings: { IPN_SIGNATURE: 'optional' } })
let id = ''
beforeEach(() => {
  id = `T-AMOUNT-${crypto.randomUUID()}`
})
afterEach(() => emptyTables(lab.database))

type Paid = Parameters<typeof makeTransaction>[2]

/** Plays an order at the sandbox, whose own notification arrives, and syncs it once. */
async function play(order: { amount?: string; transAmount?: string }, payments: Paid = []) {
  const list = payments.map((one) => ({ paymentMethod: 'CC', status: 'SUCCESS', ...one }))
  await lab.control('POST', '/transactions', { transactionId: id, payments: list, ...order })
  const isNotified = async () => (await lab.api(`/v1/transactions/${id}`)).status === 200
  await waitUntil(isNotified, { what: 'the notification' })
  await syncDue(lab.service.ctx)
}

async function readShown() {
  const { state, paidAmount, expectedAmount, expectedAmountSource, amountMatches } =
    await lab.transaction(id)
  return { state, paidAmount, expectedAmount, expectedAmountSource, amountMatches }
}

async function readMismatches() {
  const { data } = await readPage(await lab.api('/v1/discrepancies'))
  return data.map(({ kind, ours, theirs, resolvedAt }) => ({
    kind,
    says: [ours, theirs],
    open: resolvedAt === null,
  }))
}

const mismatch = (expected: string, paid: string, open = true) => ({
  kind: 'amount_mismatch',
  says: [
    { source: 'notification', says: `amount ${expected}` },
    { source: 'query', says: paid },
  ],
  open,
})

const FROM_IPN = { expectedAmount: '250000', expectedAmountSource: 'notification' }

describe('an order of 250000 at the sandbox', () => {
  it.each([
    ['paid in full', {}, [{ amount: '250000' }], '250000', true],
    ['paid in full, written otherwise', {}, [{ amount: '250000.00' }], '250000.00', true],
    ['underpaid', {}, [{ amount: '1000' }], '1000', false],
    ['overpaid', {}, [{ amount: '250001' }], '250001', false],
    ['part-paid', { transAmount: '1000' }, [{ amount: '1000' }], '1000', false],
    ['paid in two parts', {}, [{ amount: '1000' }, { amount: '249000' }], '250000', true],
  ])('that is %s', async (_, order, payments, paidAmount, amountMatches) => {
    await play({ amount: '250000', ...order }, payments)
    expect(await readShown()).toEqual({ state: 'paid', paidAmount, ...FROM_IPN, amountMatches })
    const found = (await readMismatches()).filter(({ kind }) => kind === 'amount_mismatch')
    expect(found).toEqual(amountMatches ? [] : [mismatch('250000', `paid ${paidAmount}`)])
    const recorded = await readRecorded(lab, id)
    const events = recorded.filter(({ type }) => type === 'discrepancy.found')
    expect(events.map(({ data }) => data.kind)).toEqual(
      (await readMismatches()).map(({ kind }) => kind).reverse(),
    )
  })

  it.each([
    ['is not paid', [{ amount: '250000', status: 'FAILED' }], 'failed'],
    ['has a payment in progress', [{ amount: '9', status: 'PROCESSING' }], 'pending'],
  ])('that %s has nothing to compare', async (_, payments, state) => {
    await play({ amount: '250000' }, payments)
    expect(await readShown()).toEqual({ state, paidAmount: '0', ...FROM_IPN, amountMatches: null })
    expect(await readMismatches()).toEqual([])
  })

  it('of which a part is paid, and the rest is in progress, is no discrepancy yet', async () => {
    const parts = [
      { id: `a-${id}`, amount: '1000' },
      { id: `b-${id}`, amount: '249000', status: 'PROCESSING' },
    ]
    await play({ amount: '250000' }, parts)
    expect(await readShown()).toMatchObject({ paidAmount: '1000', amountMatches: false })
    expect(await readMismatches()).toEqual([])
    await lab.control('PATCH', `/payments/b-${id}`, { status: 'FAILED' })
    await syncAgain(lab, id)
    expect(await readMismatches()).toEqual([mismatch('250000', 'paid 1000')])
  })

  it.each([
    ['all that is too much', '50000', false],
    ['a part of that', '49999', true],
    ['everything', '300000', false],
  ])('that is overpaid is a discrepancy until %s is refunded', async (_, refundedAmount, open) => {
    await play({ amount: '250000' }, [{ id: `p-${id}`, amount: '300000' }])
    await lab.control('PATCH', `/payments/p-${id}`, { refundedAmount })
    await syncAgain(lab, id)
    const found = (await readMismatches()).filter(({ kind }) => kind === 'amount_mismatch')
    expect(found).toEqual([mismatch('250000', 'paid 300000', open)])
    expect(await readShown()).toMatchObject({ paidAmount: '300000', amountMatches: false })
  })
})

describe('the expected amount', () => {
  it('is compared when its notification arrives after the payment is known', async () => {
    await makeTransaction(lab, id, [{ amount: '1000' }])
    await lab.api(`/v1/transactions/${id}/sync`, { method: 'POST' })
    await syncDue(lab.service.ctx)
    expect(await readShown()).toMatchObject({
      state: 'paid',
      expectedAmount: null,
      expectedAmountSource: null,
      amountMatches: null,
    })
    const tag = async () => (await lab.api(`/v1/transactions/${id}`)).headers.get('etag')
    const before = await tag()
    await notifyOf(lab, id, { svc_ResponseCode: 0, svc_Amount: 250000 })
    await syncAgain(lab, id)
    expect(await tag()).not.toBe(before)
    expect(await readShown()).toMatchObject({ ...FROM_IPN, amountMatches: false })
    expect((await readMismatches()).map(({ kind }) => kind)).toEqual(['amount_mismatch'])
  })

  it('is that of the first verified notification: another one is an order_conflict', async () => {
    await makeTransaction(lab, id, [{ amount: '250000' }])
    for (const amount of [0, 250000, 1000]) {
      await notifyOf(lab, id, { svc_ResponseCode: 0, svc_Amount: amount })
    }
    await syncDue(lab.service.ctx)
    expect(await readShown()).toMatchObject({ ...FROM_IPN, amountMatches: true })
    expect((await readMismatches()).map(({ kind, says }) => [kind, ...says])).toEqual([
      [
        'order_conflict',
        { source: 'notification', says: 'amount 250000' },
        { source: 'notification', says: 'amount 1000' },
      ],
    ])
  })

  it('is none of an unsigned notification', async () => {
    await makeTransaction(lab, id, [{ amount: '1000' }])
    const body = { svc_TransactionID: id, svc_Amount: 5, svc_ResponseCode: 0 }
    expect((await postIpn(lab.service.url, body)).status).toBe(200)
    await syncDue(lab.service.ctx)
    expect(await readShown()).toMatchObject({ expectedAmount: null, amountMatches: null })
    expect(await readMismatches()).toEqual([])
  })
})
