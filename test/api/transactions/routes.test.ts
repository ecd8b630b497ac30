import { describe, expect, it } from 'vitest'
import { readPage, seedTransaction } from '../../support/api.ts'
import { ageOmission } from '../../support/listing-gateway.ts'
import { postIpn, signIpn } from '../../support/service.ts'
import { useRig } from '../../support/use-started.ts'
import { waitUntil } from '../../support/wait-until.ts'

const TRANSACTION = [
  ...['transactionId', 'merchantCode', 'orderId', 'merchantTxnId', 'currency', 'state'],
  ...['paidAmount', 'expectedAmount', 'expectedAmountSource', 'amountMatches'],
  ...['refundedAmount', 'duplicatePayment', 'sameOrder', 'payments', 'final', 'sync'],
  ...['ipnCount', 'firstSeenAt', 'updatedAt'],
].toSorted()
const PAYMENT = [
  ...['id', 'transactionId', 'merchantCode', 'orderId', 'merchantTxnId', 'status'],
  ...['amount', 'refundedAmount', 'refundableAmount', 'currency', 'paymentMethod'],
  ...['unrecognised', 'missing', 'unreadable', 'hold', 'firstSeenAt', 'updatedAt'],
  ...['asOf'],
].toSorted()
const SYNC = ['status', 'asOf', 'nextAttemptAt', 'attempts', 'lastError'].toSorted()
const ISO = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/

const rig = useRig({ settings: { SYNC_REPOLL_MS: '3600000', SYNC_MIN_GAP_MS: '0' } })

type Listed = Record<string, string | boolean>

/** Creates a transaction at the gateway and waits for its first query. */
async function make(transactionId: string, payments: Listed[]) {
  await rig.control('POST', '/transactions', { transactionId, payments, ipn: false })
  await ask(transactionId)
}

async function ask(transactionId: string) {
  const before = await count(transactionId)
  expect((await rig.api(`/v1/transactions/${transactionId}/sync`, { method: 'POST' })).status).toBe(
    202,
  )
  await waitUntil(async () => (await count(transactionId)) > before, { what: 'a query' })
}

async function count(transactionId: string): Promise<number> {
  const [row] = await rig.database.sql<{ n: number }[]>`
    select count(*) as n from gateway_calls where transaction_id = ${transactionId}`
  return row?.n ?? 0
}

async function tag(transactionId: string): Promise<string> {
  return (await rig.api(`/v1/transactions/${transactionId}`)).headers.get('etag') ?? ''
}

describe('a transaction', () => {
  it('has exactly the members of the contract, and the same in the list', async () => {
    await make('T-BODY', [
      { id: '5', amount: '1000', paymentMethod: 'CC', status: 'SUCCESS' },
      { id: '6', amount: '1000', paymentMethod: 'CC', status: 'PROCESSING' },
    ])
    const body = JSON.parse(await (await rig.api('/v1/transactions/T-BODY')).text())
    expect(body).toMatchObject({ transactionId: 'T-BODY', state: 'paid', final: false })
    expect(Object.keys(body).toSorted()).toEqual(TRANSACTION)
    expect(Object.keys(body.sync).toSorted()).toEqual(SYNC)
    expect(body.payments).toHaveLength(2)
    const times = [body.firstSeenAt, body.updatedAt, body.sync.asOf]
    for (const payment of body.payments) {
      expect(Object.keys(payment).toSorted()).toEqual(PAYMENT)
      times.push(payment.firstSeenAt, payment.updatedAt, payment.asOf)
    }
    for (const time of times) expect(time).toMatch(ISO)
    const [row] = (await readPage(await rig.api('/v1/transactions?limit=1'))).data
    expect(row).toEqual(body)
  })

  it('has every member even before the first query', async () => {
    await seedTransaction(rig.database, { transactionId: 'T-NEW' })
    const body = JSON.parse(await (await rig.api('/v1/transactions/T-NEW')).text())
    expect(Object.keys(body).toSorted()).toEqual(TRANSACTION)
    expect(body).toMatchObject({ orderId: null, merchantTxnId: null, payments: [], ipnCount: 0 })
    expect(body.sync).toMatchObject({ asOf: null, nextAttemptAt: null, lastError: null })
  })

  it.each([
    ['10000.50', '0.5', '10000.00'],
    ['999999999999999999.9999', '1', '999999999999999998.9999'],
  ])('shows %s as listed, with %s refunded', async (amount, refundedAmount, refundable) => {
    const id = `T-AMOUNT-${amount}`
    const payment = { id: `P-${amount}`, amount, paymentMethod: 'QR', status: 'SUCCESS' }
    await rig.control('POST', '/transactions', {
      transactionId: id,
      payments: [payment],
      ipn: false,
    })
    await rig.control('PATCH', `/payments/P-${amount}`, { refundedAmount })
    await ask(id)
    expect(await rig.transaction(id)).toMatchObject({
      paidAmount: amount,
      refundedAmount,
      payments: [{ amount, refundedAmount, refundableAmount: refundable }],
    })
  })
})

describe('If-None-Match', () => {
  it.each([
    ['the tag', (tag: string) => tag],
    ['the tag as a strong one', (tag: string) => tag.replace('W/', '')],
    ['a list that contains it', (tag: string) => `"other", W/"77777" ,${tag}`],
    ['anything', () => '*'],
  ])('with %s gives 304, no body, and the tag', async (_, write) => {
    await seedTransaction(rig.database, { transactionId: `T-304-${_}`, state: 'paid' })
    const path = `/v1/transactions/${encodeURIComponent(`T-304-${_}`)}`
    const etag = (await rig.api(path)).headers.get('etag') ?? ''
    expect(etag).toMatch(/^W\/"0\.\d+"$/)
    const response = await rig.api(path, { headers: { 'if-none-match': write(etag) } })
    expect([response.status, await response.text()]).toEqual([304, ''])
    expect(response.headers.get('etag')).toBe(etag)
  })

  it.each(['W/"99"', '"99", W/"98"', '1', 'W/1', ''])('with %s gives the body', async (header) => {
    await seedTransaction(rig.database, { transactionId: `T-200-${header.length}${header[0]}` })
    const path = `/v1/transactions/${encodeURIComponent(`T-200-${header.length}${header[0]}`)}`
    const response = await rig.api(path, { headers: { 'if-none-match': header } })
    expect(response.status).toBe(200)
  })
})

describe('the tag', () => {
  it('stays the same for a query and a notification that bring nothing new', async () => {
    await make('T-TAG', [{ id: 'P-TAG', amount: '5', paymentMethod: 'QR', status: 'SUCCESS' }])
    const before = await rig.transaction('T-TAG')
    const etag = await tag('T-TAG')
    await ask('T-TAG')
    const asked = await rig.transaction('T-TAG')
    expect(Date.parse(asked.sync.asOf ?? '')).toBeGreaterThan(Date.parse(before.sync.asOf ?? ''))
    expect(asked.payments[0]?.asOf).toBe(asked.sync.asOf)
    const calls = await count('T-TAG')
    await postIpn(rig.service.url, signIpn({ svc_TransactionID: 'T-TAG' }))
    await waitUntil(async () => (await count('T-TAG')) > calls, { what: 'the query' })
    expect((await rig.transaction('T-TAG')).ipnCount).toBe(1)
    expect(await tag('T-TAG')).toBe(etag)
    expect((await rig.transaction('T-TAG')).updatedAt).toBe(before.updatedAt)
  })

  it('changes with everything else a reader sees of the payments', async () => {
    await make('T-SEEN', [{ id: 'P-SEEN', amount: '5', paymentMethod: 'QR', status: 'PROCESSING' }])
    for (const change of [
      { status: 'SUCCESS' },
      { amount: '7' },
      { refundedAmount: '2' },
      { paymentMethod: 'ATM' },
      { listed: false },
      { listed: true },
    ]) {
      const before = { etag: await tag('T-SEEN'), at: (await rig.transaction('T-SEEN')).updatedAt }
      await rig.control('PATCH', '/payments/P-SEEN', change)
      await ask('T-SEEN')
      if (change.listed === false) {
        await ageOmission(rig, 'P-SEEN')
        await ask('T-SEEN')
      }
      expect([change, await tag('T-SEEN')]).not.toEqual([change, before.etag])
      const { updatedAt } = await rig.transaction('T-SEEN')
      expect(Date.parse(updatedAt)).toBeGreaterThan(Date.parse(before.at))
    }
    const etag = await tag('T-SEEN')
    const payment = { id: 'P-SEEN-2', amount: '5', paymentMethod: 'QR', status: 'FAILED' }
    await rig.control('POST', '/transactions', { transactionId: 'T-SEEN', payments: [payment] })
    await waitUntil(async () => (await tag('T-SEEN')) !== etag, { what: 'a new tag' })
  })
})
