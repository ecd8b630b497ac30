import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { GatewayCall, PaymentList } from '../../../src/gateway/types.ts'
import { claimDue } from '../../../src/sync/claim-due.ts'
import { commitAnswer } from '../../../src/sync/commit.ts'
import type { QueryAnswer } from '../../../src/sync/types.ts'
import { ask as askRefund } from '../../support/ask.ts'
import { emptyTables } from '../../support/database.ts'
import { makeTransaction, readItem, registerDue } from '../../support/sync.ts'
import { useRig } from '../../support/use-started.ts'

const rig = useRig({ settings: { ROLE: 'web' } })
/** Makes ids unique to a test: the gateway keeps its transactions. */
let ids: string[] = []
beforeEach(() => {
  const test = crypto.randomUUID()
  ids = [0, 1, 2, 3, 4].map((n) => `T-${test}-${n}`)
})
afterEach(() => emptyTables(rig.database))

const listOf = (...payments: PaymentList['payments']): PaymentList => ({
  payments,
  unreadable: [],
  rounded: [],
  json: '[]',
  omittedBytes: 0,
})
const read = (transactionId: string) => readItem(rig, transactionId)
const id = (n: number) => ids[n] ?? ''

/** Claims the transactions, queries each, and passes the answers through `change`. */
async function ask(
  change: (call: GatewayCall<PaymentList>, id: string) => GatewayCall<PaymentList> = (call) => call,
): Promise<QueryAnswer[]> {
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

/** Queries what is due of those that are committed already; `again` passes between the answers and their commit. */
async function askAgain(again: () => Promise<void> = async () => {}): Promise<void> {
  await rig.database.sql`update transactions set due_at = now() - interval '1 s'`
  const { ctx } = rig.service
  const claims = await claimDue(ctx, 100)
  expect(claims.map(({ hasRefunds }) => hasRefunds)).toEqual(ids.map(() => false))
  const answered = await Promise.all(
    claims.map(async (claim) => {
      return { claim, sentAfterMs: 0, call: await ctx.gateway.queryPayments(claim) }
    }),
  )
  await again()
  await commitAll(answered.sort(lastTheSecond))
}

/** Added in one turn of the event loop, so that they share a commit. */
const commitAll = (answers: readonly QueryAnswer[]) =>
  Promise.all(answers.map((answer) => commitAnswer(rig.service.ctx, answer)))

/** Lets an answer be committed together with others. */
const lastTheSecond = (a: QueryAnswer, b: QueryAnswer) =>
  Number(a.claim.transactionId === ids[1]) - Number(b.claim.transactionId === ids[1])

/** How many commits wrote to the transactions. */
async function countCommits(): Promise<number> {
  const [row] = await rig.database
    .sql`select count(distinct xmin::text)::int as n from transactions`
  return row?.n
}

describe('answers that are committed together', () => {
  it('are each written completely, in one commit', async () => {
    const settled = await commitAll(await ask())
    expect(settled.map(({ end }) => end)).toEqual(
      ids.map(() => ({ next: 'idle', lastError: null, dueAgain: false, orderCheckDue: false })),
    )
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
    expect(rows).toEqual(
      ids.flatMap((id) =>
        [
          { field: 'state', before: 'pending', after: 'paid', payment: null },
          { field: 'status', before: null, after: 'SUCCESS', payment: `p-${id}` },
        ].map((one) => ({ id, ...one, called: id, outcome: 'answered', code: '0', fits: true })),
      ),
    )
  })

  it('may have different outcomes', async () => {
    const answers = await ask((call, id) => {
      if (id === ids[1]) return { ...call, outcome: { kind: 'unknown', reason: 'ECONNRESET' } }
      if (id === ids[2])
        return { ...call, outcome: { kind: 'rejected', code: '9', message: 'wait' } }
      if (id === ids[3])
        return { ...call, outcome: { kind: 'answered', value: listOf(), message: '' } }
      return call
    })
    await rig.database
      .sql`update transactions set lease_id = gen_random_uuid() where transaction_id = ${id(4)}`
    const settled = await commitAll(answers)
    expect(settled.map(({ end }) => end.next)).toEqual([
      'idle',
      'query_later',
      'query_later',
      'query_later',
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

  it('are not affected by one that cannot be stored', async () => {
    const foreign = {
      id: `p-${ids[2]}`,
      status: 'FORBIDDEN',
      amount: '10000.50',
      paymentMethod: 'CC',
      refundedAmount: '0',
    }
    const answers = await ask((call, id) =>
      id === ids[2]
        ? { ...call, outcome: { kind: 'answered', value: listOf(foreign), message: '' } }
        : call,
    )
    await rig.database
      .sql`alter table payments add constraint no_such check (status <> 'FORBIDDEN')`
    await commitAll(answers)
    await rig.database.sql`alter table payments drop constraint no_such`
    expect(await read(id(2))).toMatchObject({
      state: 'pending',
      attempts: 1,
      lastError: 'the database rejected the answer (23514)',
    })
    for (const id of ids.filter((one) => one !== ids[2])) {
      expect(await read(id)).toMatchObject({ state: 'paid', attempts: 0 })
    }
    const [counted] = await rig.database.sql`
      select count(*)::int as calls, count(distinct transaction_id)::int as ids from gateway_calls`
    expect(counted).toEqual({ calls: 5, ids: 5 })
  })

  it('exclude one for which a refund was requested meanwhile', async () => {
    await commitAll(await ask())
    await askAgain(async () => {
      const { url } = rig.service
      expect((await askRefund({ url }, `p-${ids[1]}`, { amount: '10' })).status).toBe(202)
    })
    const [refund] = await rig.database.sql`select status, attempts from refunds`
    expect(refund).toEqual({ status: 'pending', attempts: 0 })
    expect((await rig.transaction(id(1))).final).toBe(false)
    expect((await rig.transaction(id(0))).final).toBe(true)
    const [again] = await claimDue(rig.service.ctx, 100)
    expect(again).toMatchObject({ transactionId: ids[1], hasRefunds: true })
  })

  it('exclude one whose refunded amount has increased', async () => {
    await commitAll(await ask())
    await rig.control('PUT', '/refund-mode', { ipn: 'never' })
    await rig.control('POST', `/payments/p-${ids[1]}/portal-refund`, { amount: '1' })
    await askAgain()
    const found = await rig.database.sql`select kind, transaction_id as id from discrepancies`
    expect(found).toEqual([{ kind: 'unexplained_growth', id: ids[1] }])
  })
})
