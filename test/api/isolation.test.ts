import { beforeEach, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { subtractAmount } from '../../src/money.ts'
import { Payment } from '../../src/payments/view.ts'
import { Refund } from '../../src/refunds/view.ts'
import {
  askRefund,
  callAs,
  readRows,
  registerEndpoint,
  SHARED,
  type Tenant,
  useTwoAccounts,
  waitUntilIdle,
} from '../support/accounts.ts'
import { expectProblem } from '../support/api.ts'
import { openEventStream, readEvents } from '../support/feed.ts'
import { KEY, postIpn, signIpn } from '../support/service.ts'
import { waitUntil } from '../support/wait-until.ts'

const accounts = useTwoAccounts()
// What is compared before and after would differ by a query of the account's own.
beforeEach(() => waitUntilIdle(accounts.rig, accounts.theirs))

const Calls = z.object({
  data: z.array(z.object({ merchantCode: z.string(), signature: z.string() })),
})

const read = async (asker: { key: string }, path: string) =>
  (await callAs(accounts.rig, asker, path)).json()
const readRefund = async (owner: Tenant, id = owner.refundId) =>
  Refund.parse(await read(owner, `/v1/refunds/${id}`))
const readPayment = async (owner: Tenant, id: string) =>
  Payment.parse(await read(owner, `/v1/payments/${id}`))

/** Every row of the other account but the notifications that it got itself. */
const readTheirs = () => readRows(accounts.rig, [accounts.theirs])

describe('an id that both accounts have', () => {
  it('reserves nothing of the other payment, and each refund reaches its own account', async () => {
    const { rig, mine, theirs } = accounts
    const mineBefore = await readPayment(mine, SHARED.paymentId)
    const before = await readPayment(theirs, SHARED.paymentId)
    const taken = await askRefund(rig, mine, SHARED.paymentId, 'order-8', { amount: '100' })
    const { id } = Refund.parse(await taken.json())
    await waitUntil(async () => (await readRefund(mine, id)).status === 'accepted', {
      what: 'refund',
    })
    const { refundableAmount: left } = await readPayment(mine, SHARED.paymentId)
    expect(left).toBe(subtractAmount(mineBefore.refundableAmount, '100'))
    expect((await readPayment(theirs, SHARED.paymentId)).refundableAmount).toBe(
      before.refundableAmount,
    )
    await rig.control('POST', `/refunds/${id}/settle?merchantCode=${mine.merchantCode}`, {
      outcome: 'success',
    })
    const ended = async () => (await readRefund(mine, id)).status === 'succeeded'
    await waitUntil(ended, { what: 'the refund to end' })
    expect(await readPayment(theirs, SHARED.paymentId)).toEqual(before)
  })
})

it("calls are signed with their account's secret: the gateway verified every one, of both", async () => {
  const { rig, mine, theirs } = accounts
  const read = async (command: string) =>
    Calls.parse(await rig.control('GET', `/calls?command=${command}`)).data
  const calls = [...(await read('REFUND')), ...(await read('QUERY_PT'))]
  expect(new Set(calls.map(({ merchantCode }) => merchantCode))).toEqual(
    new Set([mine.merchantCode, theirs.merchantCode]),
  )
  expect(calls.filter(({ signature }) => signature !== 'verified')).toEqual([])
})

describe('a notification', () => {
  it("of a payment, signed by one account and naming the other's ids, changes nothing there", async () => {
    const { rig, mine, theirs } = accounts
    const before = await readTheirs()
    const { status } = await postIpn(
      rig.service.url,
      signIpn({
        svc_TransactionID: theirs.transactionId,
        svc_PaymentID: theirs.paymentId,
        svc_OrderID: 'STOLEN',
        svc_Currency: 'XXX',
      }),
    )
    expect(status).toBe(200)
    const path = `/v1/transactions/${theirs.transactionId}`
    const asked = async () => /"attempts":[1-9]/.test(JSON.stringify(await read(mine, path)))
    await waitUntil(asked, { what: 'the query under the account that was notified' })
    expect(await read(mine, path)).toMatchObject({ merchantCode: mine.merchantCode, payments: [] })
    expect(await readTheirs()).toEqual(before)
  })

  it("of a refund, signed by one account and naming the other's, settles nothing there", async () => {
    const { rig, mine, theirs } = accounts
    const before = await readTheirs()
    const { amount } = await readRefund(theirs)
    for (const svc_PaymentID of [theirs.paymentId, mine.paymentId, SHARED.paymentId]) {
      const notification = signIpn(
        {
          svc_Command: 'REFUND',
          svc_RequestID: theirs.refundId,
          svc_PaymentID,
          svc_TransactionID: 'R-STOLEN',
          svc_Amount: Number(amount),
          svc_ResponseCode: 0,
        },
        { exclude: [] },
      )
      expect((await postIpn(rig.service.url, notification)).status).toBe(200)
    }
    const handled = async () => {
      const rows = await rig.database.sql`
        select from ipn_events where request_id = ${theirs.refundId} and handled_at is not null`
      return rows.length >= 2
    }
    await waitUntil(handled, { what: 'the notifications that name a payment of their own account' })
    expect(await readTheirs()).toEqual(before)

    const sync = `/v1/transactions/${theirs.transactionId}/sync`
    expect((await callAs(rig, theirs, sync, { method: 'POST' })).status).toBe(202)
    const settled = async () => {
      const rows = await rig.database.sql`
        select from transactions where merchant_code = ${theirs.merchantCode}
          and transaction_id = ${theirs.transactionId} and claimed = want and lease_id is null`
      return rows.length === 1
    }
    await waitUntil(settled, { what: 'a query under the other account' })
    expect(await readRefund(theirs)).toMatchObject({ status: 'accepted', amount })
    expect(await readRefund(mine)).toMatchObject({ status: 'accepted' })
  })
})

describe('another account', () => {
  const read = (path: string, init: RequestInit = {}) =>
    callAs(accounts.rig, accounts.mine, path, init)

  it('is not found with the ETag of its owner, nor when a header names it', async () => {
    const { rig, theirs } = accounts
    const { merchantCode } = theirs
    await rig.control('POST', '/transactions', {
      ...{ transactionId: 'T-TAGGED', merchantCode },
      payments: [{ id: 'P-TAGGED', amount: '5', paymentMethod: 'CC', status: 'SUCCESS' }],
    })
    const path = '/v1/transactions/T-TAGGED'
    const isKnown = async () => (await callAs(rig, theirs, path)).status === 200
    await waitUntil(isKnown, { what: 'a transaction that only the other account has' })
    const etag = (await callAs(rig, theirs, path)).headers.get('etag') ?? ''
    expect(etag).not.toBe('')
    const named = { 'x-merchant-code': merchantCode, merchantcode: merchantCode }
    const rewritten = { 'x-original-url': path, 'x-rewrite-url': path }
    const asked: Record<string, string>[] = [
      ...[{ 'if-none-match': etag }, { 'if-none-match': '*' }, named, rewritten],
      { 'x-http-method-override': 'GET' },
    ]
    const answers = asked.flatMap((headers) =>
      ['', '?wait=0', '?wait=1'].map((query) => read(path + query, { headers })),
    )
    for (const answer of answers) await expectProblem(await answer, 404, 'transaction_not_found')
    expect((await read(path, { method: 'HEAD' })).status).toBe(404)
    for (const method of ['OPTIONS', 'TRACE-']) {
      expect([400, 405]).toContain((await read(path, { method })).status)
    }
  })

  it('has no sync requested in its name, no hold set and no webhook registered', async () => {
    const { rig, mine, theirs } = accounts
    const { merchantCode } = theirs
    const before = await readTheirs()
    const sync = `/v1/transactions/${theirs.transactionId}/sync`
    const named = { method: 'POST', body: JSON.stringify({ merchantCode }) }
    await expectProblem(await read(sync, named), 404, 'merchant_not_found')
    for (const [target, id] of [
      ['merchant', merchantCode],
      ['payment', theirs.paymentId],
    ]) {
      for (const method of ['PUT', 'DELETE']) {
        const init = { method, body: JSON.stringify({ reason: 'an attack' }) }
        const refused = await read(`/v1/holds/${target}/${id}`, init)
        await expectProblem(refused, 404, `${target}_not_found`)
      }
    }
    for (const code of [merchantCode, '*', `${mine.merchantCode},${merchantCode}`]) {
      const refused = await registerEndpoint(rig, mine, `?merchantCode=${code}`)
      expect([404, 422]).toContain(refused.status)
    }
    expect(await readTheirs()).toEqual(before)
  })

  it('shows nothing in the feed and its stream while it is busy', async () => {
    const { rig, mine, theirs } = accounts
    const stream = await openEventStream({ api: read }, '?after=0')
    try {
      expect((await askRefund(rig, theirs, SHARED.paymentId, 'busy')).status).toBe(202)
      await waitUntilIdle(rig, theirs)
      const { id } = Refund.parse(
        await (await askRefund(rig, mine, SHARED.paymentId, 'busy')).json(),
      )
      const isThere = async () => JSON.stringify(stream.messages).includes(id)
      await waitUntil(isThere, { what: "the caller's own refund in the stream" })
      const seen = JSON.stringify(stream.messages)
      expect(seen).toContain(mine.merchantCode)
      expect(seen).not.toContain(theirs.merchantCode)
      const { data } = await readEvents(await read('/v1/events?after=0&limit=200'))
      const owners = new Set(data.map((event) => event.data.merchantCode))
      expect(owners).toEqual(new Set([mine.merchantCode]))
    } finally {
      stream.leave()
      await stream.ended
    }
  })
})

it('a webhook endpoint for all accounts takes a key for all', async () => {
  const { rig, mine } = accounts
  const remove = (asker: { key: string }, id: string, query: string) =>
    callAs(rig, asker, `/v1/webhook-endpoints/${id}${query}`, { method: 'DELETE' })
  const registered = await registerEndpoint(rig, { key: KEY })
  const { id } = z.object({ id: z.uuid() }).parse(await registered.json())
  for (const query of ['', '?merchantCode=*']) {
    await expectProblem(await remove(mine, id, query), 404, 'webhook_endpoint_not_found')
  }
  expect((await remove({ key: KEY }, id, '?merchantCode=*')).status).toBe(204)
})
