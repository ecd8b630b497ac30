import { describe, expect, it, onTestFinished } from 'vitest'
import type { ServiceContext } from '../../../src/create-context.ts'
import { claimDue } from '../../../src/sync/claim-due.ts'
import { beginSync, syncDue } from '../../../src/sync/sync-due.ts'
import type { Claim } from '../../../src/sync/types.ts'
import { OTHER, writeMerchantsFile } from '../../support/api.ts'
import { borrowRig } from '../../support/borrow-rig.ts'
import { borrowDatabase } from '../../support/database.ts'
import { MERCHANT, postIpn, type Rig, signIpn, startTestService } from '../../support/service.ts'
import { waitUntil } from '../../support/wait-until.ts'

const [A, B] = [MERCHANT.merchantCode, OTHER.merchantCode]

async function startTwo(
  settings: Record<string, string> = {},
): Promise<Rig & { merchantsFile: string }> {
  const file = writeMerchantsFile([MERCHANT, OTHER])
  onTestFinished(file.remove)
  const rig = await borrowRig({
    settings: { ROLE: 'web', ...settings, MERCHANTS_FILE: file.path },
    sandbox: { accounts: [MERCHANT, OTHER] },
  })
  onTestFinished(() => rig.stop())
  return { ...rig, merchantsFile: file.path }
}

/** Inserts transactions of an account, due for `sinceS` seconds. */
async function storm({ database }: Rig, merchantCode: string, count: number, sinceS: number) {
  await database.sql`
    insert into transactions (merchant_code, transaction_id, due_at)
    select ${merchantCode}, 'S-' || i, now() - ${sinceS} * interval '1 s' from generate_series(1, ${count}::int) as i`
}

/** Counts the claims of each account; each has a lease, without which its answer would be lost. */
function countBy(claims: readonly Claim[]) {
  expect(new Set(claims.map(({ leaseId }) => leaseId ?? 'none')).size).toBe(claims.length)
  expect(claims.every(({ leaseId }) => leaseId)).toBe(true)
  return {
    A: claims.filter(({ merchantCode }) => merchantCode === A).length,
    B: claims.filter(({ merchantCode }) => merchantCode === B).length,
  }
}

describe('a burst of one account', () => {
  it('does not keep another from the next claim, though all of it was due before', async () => {
    const rig = await startTwo()
    const { ctx } = rig.service
    await storm(rig, A, 1_000, 60)
    await storm(rig, B, 1, 0)
    expect(countBy(await claimDue(ctx, 16))).toEqual({ A: 14, B: 1 })
    expect(countBy(await claimDue(ctx, 1))).toEqual({ A: 1, B: 0 })
  })

  it('takes turns with another burst, however many of its calls are in flight', async () => {
    const rig = await startTwo()
    const { ctx } = rig.service
    await storm(rig, A, 100, 60)
    await storm(rig, B, 100, 0)
    expect(countBy(await claimDue(ctx, 8))).toEqual({ A: 4, B: 4 })
    // The free slot goes to the account with fewer calls in flight, not to the one that waited longer.
    for (let n = 0; n < 5; n += 1) ctx.callSlots.tryTake(A)
    for (let n = 0; n < 2; n += 1) ctx.callSlots.tryTake(B)
    expect(countBy(await claimDue(ctx, 1))).toEqual({ A: 0, B: 1 })
    expect(countBy(await claimDue(ctx, 5))).toEqual({ A: 1, B: 4 })
  })

  it('leaves the last call slots to others, even when all its calls hang', async () => {
    const rig = await startTwo({ GATEWAY_MAX_CONCURRENCY: '8' })
    const { ctx } = rig.service
    await storm(rig, A, 100, 60)
    await rig.control('POST', '/faults', { command: 'QUERY_PT', kind: 'delay', delayMs: 1_500 })
    const hanging = syncDue(ctx)
    await waitUntil(() => ctx.callSlots.held(A) > 0, { what: 'claims' })
    expect([ctx.callSlots.held(A), ctx.callSlots.free()]).toEqual([7, 1])
    expect(await claimDue(ctx, 1)).toEqual([])
    await storm(rig, B, 1, 0)
    expect(countBy(await claimDue(ctx, 1))).toEqual({ A: 0, B: 1 })
    await hanging
    expect([ctx.callSlots.held(A), ctx.callSlots.free()]).toEqual([0, 8])
  })

  it('is claimed by two processes at once, and no transaction twice', async () => {
    const rig = await startTwo()
    const other = await startTestService(rig.database, rig.sandbox.url, {
      settings: { ROLE: 'web', MERCHANTS_FILE: rig.merchantsFile },
    })
    onTestFinished(() => other.stop())
    await storm(rig, A, 1_000, 60)
    await storm(rig, B, 1_000, 0)
    const taken: string[] = []
    const claimAll = async ({ ctx }: { ctx: ServiceContext }) => {
      for (let empty = 0; empty < 5; ) {
        const claims = await claimDue(ctx, 16)
        taken.push(...claims.map((one) => `${one.merchantCode} ${one.transactionId}`))
        empty = claims.length === 0 ? empty + 1 : 0
      }
    }
    const lanes = [rig.service, other, rig.service, other].map(claimAll)
    await Promise.all(lanes)
    expect(taken.length).toBe(2_000)
    expect(new Set(taken).size).toBe(2_000)
  })

  it('continues at once when a call ends: it may use the slots reserved for others', async () => {
    const rig = await startTwo({ GATEWAY_MAX_CONCURRENCY: '8' })
    // Each is final with its first answer, so none of them triggers the next round by itself.
    const payments = [{ amount: '10', paymentMethod: 'CC', status: 'SUCCESS' }]
    for (let n = 1; n <= 20; n += 1) {
      const made = { transactionId: `S-${n}`, merchantCode: A, payments, ipn: false }
      await rig.control('POST', '/transactions', made)
    }
    await storm(rig, A, 20, 60)
    let woken = 0
    const { count, finished } = await beginSync(rig.service.ctx, () => {
      woken += 1
    })
    expect(count).toBe(7)
    await finished
    expect(woken).toBeGreaterThan(0)
  })

  it("delays another account's notification only slightly", async () => {
    const rig = await startTwo({
      ROLE: 'all',
      GATEWAY_TIMEOUT_MS: '5000',
      SYNC_REPOLL_MS: '600000',
    })
    await rig.control('POST', '/faults', { command: 'QUERY_PT', kind: 'delay', delayMs: 20 })
    let nth = 0
    async function apply(): Promise<number> {
      nth += 1
      const transactionId = `T-${nth}`
      const payments = [{ amount: '10', paymentMethod: 'CC', status: 'SUCCESS' }]
      await rig.control('POST', '/transactions', {
        transactionId,
        merchantCode: B,
        payments,
        ipn: false,
      })
      const body = signIpn(
        { svc_TransactionID: transactionId, svc_MerchantCode: B },
        { secret: OTHER.secret },
      )
      const started = performance.now()
      await postIpn(rig.service.url, body)
      const answer = await rig.api(`/v1/transactions/${transactionId}?merchantCode=${B}&wait=20`)
      expect(await answer.json()).toMatchObject({ state: 'paid' })
      return performance.now() - started
    }
    const measure = async () => {
      const times: number[] = []
      for (let n = 0; n < 15; n += 1) times.push(await apply())
      return Math.round(times.toSorted((a, b) => a - b)[7] ?? 0)
    }
    const quietMs = await measure()
    await storm(rig, A, 5_000, 60)
    await rig.database.sql`select pg_notify('sync_due', '')`
    await waitUntil(() => rig.service.ctx.callSlots.held(A) > 8, { what: 'the storm' })
    const stormMs = await measure()
    const [left] = await rig.database.sql<{ n: number }[]>`
      select count(*) as n from transactions where merchant_code = ${A} and polls = 0 and attempts = 0`
    console.info(
      `notification → applied: ${quietMs} ms in quiet, ${stormMs} ms in the storm, ${left?.n} of it left`,
    )
    expect(left?.n).toBeGreaterThan(0)
  }, 60_000)
})

describe('GATEWAY_RATE_PER_S', () => {
  it('claims nothing of an account whose permits are used up far ahead, and of the other as before', async () => {
    const database = await borrowDatabase()
    onTestFinished(() => database.release())
    const file = writeMerchantsFile([MERCHANT, OTHER])
    onTestFinished(file.remove)
    const settings = { ROLE: 'web', MERCHANTS_FILE: file.path, GATEWAY_RATE_PER_S: '10' }
    const service = await startTestService(database, 'http://127.0.0.1:9', { settings })
    onTestFinished(() => service.stop())
    await database.sql`
      update merchant_accounts set paid_until = now() + interval '1 minute' where merchant_code = ${A}`
    await database.sql`
      insert into transactions (merchant_code, transaction_id, due_at)
      select code, 'AHEAD', now() from unnest(${[A, B]}::text[]) as code`
    expect(countBy(await claimDue(service.ctx, 16))).toEqual({ A: 0, B: 1 })
  })

  it('bounds the calls of an account over all processes, each account on its own', async () => {
    const database = await borrowDatabase()
    onTestFinished(() => database.release())
    const file = writeMerchantsFile([MERCHANT, OTHER])
    onTestFinished(file.remove)
    const settings = { ROLE: 'web', MERCHANTS_FILE: file.path, GATEWAY_RATE_PER_S: '10' }
    const services = [
      await startTestService(database, 'http://127.0.0.1:9', { settings }),
      await startTestService(database, 'http://127.0.0.1:9', { settings }),
    ]
    onTestFinished(async () => {
      for (const service of services) await service.stop()
    })
    await database.sql`
      insert into transactions (merchant_code, transaction_id, due_at)
      select code, 'S-' || i, now() from generate_series(1, 200) as i, unnest(${[A, B]}::text[]) as code`
    const started = performance.now()
    const claimed: { A: number; B: number }[] = []
    while (performance.now() - started < 1_500) {
      const rounds = await Promise.all(services.map(({ ctx }) => claimDue(ctx, 16)))
      claimed.push(countBy(rounds.flat()))
    }
    const tookS = (performance.now() - started) / 1_000
    for (const account of ['A', 'B'] as const) {
      const total = claimed.reduce((sum, round) => sum + round[account], 0)
      // One at the start, then one every 100 ms.
      expect(total).toBeLessThanOrEqual(Math.floor(tookS * 10) + 1)
      expect(total).toBeGreaterThanOrEqual(5)
    }
  })

  it('counts the refund that a claim leads to, and takes no second permit for it', async () => {
    const rig = await startTwo({ GATEWAY_RATE_PER_S: '1' })
    const { ctx } = rig.service
    await storm(rig, A, 2, 1)
    const [first] = await claimDue(ctx, 16)
    expect(first).toMatchObject({ merchantCode: A })
    expect(await claimDue(ctx, 16)).toEqual([])
    const ahead = async () => {
      const [row] = await rig.database.sql<{ s: number }[]>`
        select extract(epoch from paid_until - now())::float8 as s from merchant_accounts where merchant_code = ${A}`
      return row?.s ?? 0
    }
    expect(await ahead()).toBeLessThanOrEqual(1)
    await rig.database.sql`
      insert into payments (first_as_of, merchant_code, payment_id, transaction_id, status, amount, refunded_amount,
        refunded_at_first, payment_method, as_of) values (now(), ${A}, 'P', 'S-2', 'SUCCESS', 10, 0, 0, 'CC', now())`
    await rig.database.sql`
      insert into payments (first_as_of, merchant_code, payment_id, transaction_id, status, amount, refunded_amount,
        refunded_at_first, payment_method, as_of) values (now(), ${A}, 'Q', 'S-1', 'SUCCESS', 10, 0, 0, 'CC', now())`
    for (const paymentId of ['P', 'Q']) {
      const asked = await rig.api(`/v1/payments/${paymentId}/refunds?merchantCode=${A}`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', 'idempotency-key': paymentId },
        body: '{"amount":"1"}',
      })
      expect(asked.status).toBe(202)
    }
    await rig.database.sql`update merchant_accounts set paid_until = now()`
    expect(await claimDue(ctx, 16)).toHaveLength(1)
    expect(await ahead()).toBeGreaterThan(1)
  })

  it('off, no account is locked or throttled', async () => {
    const rig = await startTwo()
    await storm(rig, A, 3, 1)
    const before = await rig.database.sql`select paid_until::text from merchant_accounts`
    expect(await claimDue(rig.service.ctx, 16)).toHaveLength(3)
    expect(await rig.database.sql`select paid_until::text from merchant_accounts`).toEqual(before)
  })
})
