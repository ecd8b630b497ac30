import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import type { Call } from '../src/gateway/client.ts'
import type { ListedPayment } from '../src/gateway/messages.ts'
import { claimDue } from '../src/sync/claim.ts'
import type { Answered } from '../src/sync/lease.ts'
import { settleQuery } from '../src/sync/settle.ts'
import { emptyTables } from './support/database.ts'
import { type Rig, startRig } from './support/service.ts'
import { makeTransaction, readItem, registerDue } from './support/sync.ts'

let rig: Rig
beforeAll(async () => {
  rig = await startRig({ settings: { ROLE: 'web' } })
})
/** Of the test at work: the gateway keeps what it was told. */
let ids: string[] = []
let tests = 0
beforeEach(() => {
  tests += 1
  ids = [0, 1, 2, 3, 4].map((n) => `T-${tests}-${n}`)
})
afterEach(() => emptyTables(rig.database))
afterAll(() => rig.stop())

const read = (transactionId: string) => readItem(rig, transactionId)
const id = (n: number) => ids[n] ?? ''

/** Claims the transactions, asks about each, and lets `change` have a hand in the answers. */
async function ask(
  change: (call: Call<ListedPayment[]>, id: string) => Call<ListedPayment[]> = (call) => call,
): Promise<Answered[]> {
  const { ctx } = rig.service
  for (const id of ids) {
    await makeTransaction(rig, id, [{ id: `p-${id}`, amount: '10000.50' }])
    await registerDue(rig, id)
  }
  const claims = await claimDue(ctx, 100)
  const answers = await Promise.all(
    claims.map(async (claim) => ({
      claim,
      sentAfterMs: performance.now() - claim.knownAt,
      call: change(await ctx.gateway.queryPayments(claim), claim.transactionId),
    })),
  )
  return answers.sort((a, b) => (a.claim.transactionId < b.claim.transactionId ? -1 : 1))
}

/** They come in one turn of the event loop, so they share a commit. */
const settleAll = (answers: readonly Answered[]) =>
  Promise.all(answers.map((answer) => settleQuery(rig.service.ctx, answer)))

/** So that it is settled in a commit with others. */
const lastTheSecond = (a: Answered, b: Answered) =>
  Number(a.claim.transactionId === ids[1]) - Number(b.claim.transactionId === ids[1])

/** How many commits wrote to the transactions. */
async function countCommits(): Promise<number> {
  const [row] = await rig.database
    .sql`select count(distinct xmin::text)::int as n from transactions`
  return row?.n
}

describe('answers that are settled together', () => {
  it('are each written whole, in a commit that they share', async () => {
    const settled = await settleAll(await ask())
    expect(settled).toEqual(ids.map(() => ({ next: 'rest', lastError: null, dueAgain: false })))
    expect(await countCommits()).toBe(1)
    for (const id of ids) {
      expect(await read(id)).toMatchObject({ state: 'paid', version: 2, leased: false, polls: 0 })
      expect(await rig.transaction(id)).toMatchObject({
        paidAmount: '10000.50',
        final: true,
        payments: [{ id: `p-${id}`, amount: '10000.50', status: 'SUCCESS' }],
      })
    }
    const rows = await rig.database.sql`
      select c.transaction_id as id, c.field, c.before, c.after, c.payment_id as payment,
        g.transaction_id as called, g.outcome, g.code, t.as_of = g.sent_at as fits
      from changes c join gateway_calls g on g.id = c.call_id join transactions t
        on t.transaction_id = c.transaction_id order by c.transaction_id, c.field`
    const call = { outcome: 'answered', code: '0', fits: true }
    expect(rows).toEqual(
      ids.flatMap((id) => [
        {
          id,
          field: 'state',
          before: 'pending',
          after: 'paid',
          payment: null,
          called: id,
          ...call,
        },
        {
          id,
          field: 'status',
          before: null,
          after: 'SUCCESS',
          payment: `p-${id}`,
          called: id,
          ...call,
        },
      ]),
    )
  })

  it('may end in every way beside each other', async () => {
    const answers = await ask((call, id) => {
      if (id === ids[1]) return { ...call, outcome: { kind: 'unknown', reason: 'ECONNRESET' } }
      if (id === ids[2])
        return { ...call, outcome: { kind: 'rejected', code: '9', message: 'wait' } }
      if (id === ids[3]) return { ...call, outcome: { kind: 'answered', value: [], message: '' } }
      return call
    })
    await rig.database
      .sql`update transactions set lease_id = gen_random_uuid() where transaction_id = ${id(4)}`
    const settled = await settleAll(answers)
    expect(settled.map((one) => 'next' in one && one.next)).toEqual([
      'rest',
      'again',
      'again',
      'again',
      'lost',
    ])
    expect(await countCommits()).toBe(2)
    expect(await read(id(1))).toMatchObject({ attempts: 1, lastError: 'ECONNRESET', asOf: null })
    expect(await read(id(2))).toMatchObject({ polls: 1, state: 'pending', asOf: null })
    expect(await read(id(3))).toMatchObject({ polls: 1, state: 'pending', leased: false })
    expect((await read(id(3)))?.asOf).not.toBeNull()
    expect(await read(id(4))).toMatchObject({ state: 'pending', leased: true })
    const calls = await rig.database.sql`
      select transaction_id as id, outcome, code, message from gateway_calls order by transaction_id`
    expect(calls.slice(1)).toEqual([
      { id: ids[1], outcome: 'unknown', code: null, message: 'ECONNRESET' },
      { id: ids[2], outcome: 'rejected', code: '9', message: 'wait' },
      { id: ids[3], outcome: 'answered', code: '0', message: '' },
    ])
  })

  it('are not harmed by one that cannot be true', async () => {
    const foreign = {
      id: `p-${ids[0]}`,
      status: 'SUCCESS',
      amount: '10000.50',
      paymentMethod: 'CC',
      refundedAmount: '0',
    }
    const answers = await ask((call, id) =>
      id === ids[2]
        ? { ...call, outcome: { kind: 'answered', value: [foreign], message: '' } }
        : call,
    )
    await settleAll(answers)
    expect(await read(id(2))).toMatchObject({
      state: 'pending',
      attempts: 1,
      lastError: 'the answer lists a payment of another transaction',
    })
    for (const id of ids.filter((one) => one !== ids[2])) {
      expect(await read(id)).toMatchObject({ state: 'paid', attempts: 0 })
    }
    const [counted] = await rig.database.sql`
      select count(*)::int as calls, count(distinct transaction_id)::int as ids from gateway_calls`
    expect(counted).toEqual({ calls: 5, ids: 5 })
  })

  it('leave one apart for which a refund was asked for meanwhile', async () => {
    const first = await ask()
    await settleAll(first)
    await rig.database.sql`update transactions set due_at = now() - interval '1 s'`
    const { ctx } = rig.service
    const claims = await claimDue(ctx, 100)
    expect(claims.map(({ hasRefunds }) => hasRefunds)).toEqual([false, false, false, false, false])
    const answered = await Promise.all(
      claims.map(async (claim) => ({
        claim,
        sentAfterMs: 0,
        call: await ctx.gateway.queryPayments(claim),
      })),
    )
    const asked = await rig.api(`/v1/payments/p-${ids[1]}/refunds`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'idempotency-key': 'once' },
      body: '{"amount":"10"}',
    })
    expect(asked.status).toBe(202)
    await settleAll(answered.sort(lastTheSecond))
    const [refund] = await rig.database.sql`select status, attempts from refunds`
    expect(refund).toEqual({ status: 'pending', attempts: 0 })
    expect((await rig.transaction(id(1))).final).toBe(false)
    expect((await rig.transaction(id(0))).final).toBe(true)
    const [again] = await claimDue(ctx, 100)
    expect(again).toMatchObject({ transactionId: ids[1], hasRefunds: true })
  })

  it('leave one apart whose payment has grown', async () => {
    await settleAll(await ask())
    await rig.control('PUT', '/refund-mode', { ipn: 'never' })
    await rig.control('POST', `/payments/p-${ids[1]}/portal-refund`, { amount: '1' })
    await rig.database.sql`update transactions set due_at = now() - interval '1 s'`
    const { ctx } = rig.service
    const claims = await claimDue(ctx, 100)
    const answered = await Promise.all(
      claims.map(async (claim) => ({
        claim,
        sentAfterMs: 0,
        call: await ctx.gateway.queryPayments(claim),
      })),
    )
    await settleAll(answered.sort(lastTheSecond))
    const found = await rig.database.sql`select kind, transaction_id as id from discrepancies`
    expect(found).toEqual([{ kind: 'unexplained_growth', id: ids[1] }])
  })
})
