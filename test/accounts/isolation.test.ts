import { beforeEach, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { subtractAmount } from '../../src/money.ts'
import { Payment } from '../../src/payments/view.ts'
import { Refund } from '../../src/refunds/view.ts'
import {
  askRefund,
  callAs,
  SHARED,
  type Tenant,
  useTwoAccounts,
  waitUntilIdle,
} from '../support/accounts.ts'
import { expectProblem, readPage } from '../support/api.ts'
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

/** Every row of an account except its notifications, as text. */
async function snapshot({ merchantCode }: Tenant): Promise<string[]> {
  const { sql } = accounts.rig.database
  const rows = await Promise.all(
    ['transactions', 'payments', 'refunds', 'foreign_refunds', 'discrepancies', 'changes'].map(
      (table) => sql<{ row: string }[]>`
        select to_jsonb(t)::text as row from ${sql(table)} t
        where merchant_code = ${merchantCode} order by 1`,
    ),
  )
  return rows.flat().map(({ row }) => row)
}

describe('an idempotency key', () => {
  it('belongs to its account: the same text creates one refund in each, and replays each its own', async () => {
    const { rig, mine, theirs } = accounts
    const ask = async (asker: { key: string }, query = '') => {
      const response = await askRefund(rig, asker, SHARED.paymentId, 'order-7', {
        query,
        amount: '7',
      })
      expect(response.status).toBe(202)
      const replayed = response.headers.get('idempotent-replayed') === 'true'
      return { replayed, id: Refund.parse(await response.json()).id }
    }
    const [first, second] = [await ask(mine), await ask(theirs)]
    expect(first.id).not.toBe(second.id)
    expect([first.replayed, second.replayed]).toEqual([false, false])
    for (const [owner, { id }] of [
      [mine, first],
      [theirs, second],
    ] as const) {
      expect(await ask(owner)).toEqual({ replayed: true, id })
      const named = `?merchantCode=${owner.merchantCode}`
      expect(await ask({ key: KEY }, named)).toEqual({ replayed: true, id })
      const { data } = await readPage(
        await callAs(rig, owner, `/v1/refunds?paymentId=${SHARED.paymentId}`),
      )
      expect(data.map((one) => one.id)).toEqual([id])
    }
    const unnamed = await askRefund(rig, { key: KEY }, SHARED.paymentId, 'order-7', { amount: '7' })
    await expectProblem(unnamed, 409, 'ambiguous_merchant')
  })
})

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
    const before = await snapshot(theirs)
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
    expect(await snapshot(theirs)).toEqual(before)
  })

  it("of a refund, signed by one account and naming the other's, settles nothing there", async () => {
    const { rig, mine, theirs } = accounts
    const before = await snapshot(theirs)
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
    expect(await snapshot(theirs)).toEqual(before)

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

  it('belongs to the account that it names, under the secret of that account alone', async () => {
    const { rig, mine, theirs } = accounts
    const named = { svc_MerchantCode: theirs.merchantCode, svc_TransactionID: 'T-ROUTED' }
    const before = await snapshot(theirs)
    const forged = await postIpn(rig.service.url, signIpn(named, { secret: mine.secret }))
    expect(forged).toMatchObject({ status: 401, answer: { respcode: 1 } })
    expect(await snapshot(theirs)).toEqual(before)
    const right = await postIpn(rig.service.url, signIpn(named, { secret: theirs.secret }))
    expect(right.status).toBe(200)
    const rows = await rig.database.sql`
      select merchant_code from transactions where transaction_id = 'T-ROUTED'`
    expect([...rows]).toEqual([{ merchant_code: theirs.merchantCode }])
  })
})
