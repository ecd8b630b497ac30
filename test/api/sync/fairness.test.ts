import { afterEach, beforeEach, describe, expect, it, onTestFinished } from 'vitest'
import type { ServiceContext } from '../../../src/create-context.ts'
import type { Service } from '../../../src/service.ts'
import { claimDue } from '../../../src/sync/claim-due.ts'
import { beginSync, syncDue } from '../../../src/sync/sync-due.ts'
import type { Claim } from '../../../src/sync/types.ts'
import { OTHER, seedPayment, TWO_ACCOUNTS } from '../../support/api.ts'
import { ask } from '../../support/ask.ts'
import { MERCHANT, postIpn, signIpn, startTestService } from '../../support/service.ts'
import { makeTransaction } from '../../support/sync.ts'
import { clearRig, useRig } from '../../support/use-started.ts'
import { waitUntil } from '../../support/wait-until.ts'

const [A, B] = [MERCHANT.merchantCode, OTHER.merchantCode]
/** Eight call slots, of which one account has seven at most. */
const settings = { ROLE: 'web', ...TWO_ACCOUNTS, GATEWAY_MAX_CONCURRENCY: '8' }
const rig = useRig({ settings, sandbox: { accounts: [MERCHANT, OTHER] } })
const others: Service[] = []
afterEach(async () => {
  // Before the rows go: a worker could add a payment to a transaction that is being deleted.
  for (const other of others.splice(0)) await other.stop()
  await clearRig(rig)
})

/** Another process with the same settings, until the test ends. */
async function startOther(more: Record<string, string> = {}) {
  const other = await startTestService(rig.database, rig.sandbox.url, {
    settings: { ...settings, ...more },
  })
  others.push(other)
  return other
}

/** Inserts transactions of an account, due for `sinceS` seconds. */
async function storm(merchantCode: string, count: number, sinceS: number) {
  await rig.database.sql`
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
const claim = async (slots: number, ctx: ServiceContext = rig.service.ctx) =>
  countBy(await claimDue(ctx, slots))

describe('a burst of one account', () => {
  it('does not keep another from the next claim, though all of it was due before', async () => {
    await storm(A, 1_000, 60)
    await storm(B, 1, 0)
    expect(await claim(16)).toEqual({ A: 7, B: 1 })
    expect(await claim(1)).toEqual({ A: 1, B: 0 })
  })

  it('takes turns with another burst, however many of its calls are in flight', async () => {
    const { callSlots } = rig.service.ctx
    await storm(A, 100, 60)
    await storm(B, 100, 0)
    expect(await claim(8)).toEqual({ A: 4, B: 4 })
    // The free slot goes to the account with fewer calls in flight, not to the one that waited longer.
    const releases = [A, A, A, B].map((account) => callSlots.tryTake(account))
    onTestFinished(() => {
      for (const release of releases) release?.()
    })
    expect(await claim(1)).toEqual({ A: 0, B: 1 })
    expect(await claim(4)).toEqual({ A: 1, B: 3 })
  })

  it('leaves the last call slots to others, even when all its calls hang', async () => {
    const { ctx } = rig.service
    await storm(A, 100, 60)
    await rig.control('POST', '/faults', { command: 'QUERY_PT', kind: 'delay', delayMs: 500 })
    const hanging = syncDue(ctx)
    await waitUntil(() => ctx.callSlots.held(A) > 0, { what: 'claims' })
    expect([ctx.callSlots.held(A), ctx.callSlots.free()]).toEqual([7, 1])
    expect(await claimDue(ctx, 1)).toEqual([])
    await storm(B, 1, 0)
    expect(await claim(1)).toEqual({ A: 0, B: 1 })
    await hanging
    expect([ctx.callSlots.held(A), ctx.callSlots.free()]).toEqual([0, 8])
  })

  it('is claimed by two processes at once, and no transaction twice', async () => {
    const other = await startOther()
    await storm(A, 300, 60)
    await storm(B, 300, 0)
    const taken: string[] = []
    const claimAll = async ({ ctx }: { ctx: ServiceContext }) => {
      for (let empty = 0; empty < 5; ) {
        const claims = await claimDue(ctx, 16)
        taken.push(...claims.map((one) => `${one.merchantCode} ${one.transactionId}`))
        empty = claims.length === 0 ? empty + 1 : 0
      }
    }
    await Promise.all([rig.service, other, rig.service, other].map(claimAll))
    expect([taken.length, new Set(taken).size]).toEqual([600, 600])
  })

  it('continues at once when a call ends: it may use the slots reserved for others', async () => {
    // Each is final with its first answer, so none of them triggers the next round by itself.
    for (let n = 1; n <= 20; n += 1) await makeTransaction(rig, `S-${n}`)
    await storm(A, 20, 60)
    let woken = 0
    const { count, finished } = await beginSync(rig.service.ctx, () => {
      woken += 1
    })
    expect(count).toBe(7)
    await finished
    expect(woken).toBeGreaterThan(0)
  })

  it("delays another account's notification only slightly", async () => {
    await rig.control('POST', '/faults', { command: 'QUERY_PT', kind: 'delay', delayMs: 20 })
    await storm(A, 2_000, 60)
    const worker = await startOther({ ROLE: 'worker', SYNC_REPOLL_MS: '600000' })
    await waitUntil(() => worker.ctx.callSlots.held(A) === 7, { what: 'the storm' })
    for (const id of ['T-1', 'T-2', 'T-3']) {
      await makeTransaction(rig, id, [{}], B)
      const about = { svc_TransactionID: id, svc_MerchantCode: B }
      await postIpn(rig.service.url, signIpn(about, { secret: OTHER.secret }))
      const answer = await rig.api(`/v1/transactions/${id}?merchantCode=${B}&wait=20`)
      expect(await answer.json()).toMatchObject({ state: 'paid' })
    }
    const left = await rig.database.sql`
      select from transactions where merchant_code = ${A} and polls = 0 and attempts = 0`
    expect(left.length).toBeGreaterThan(0)
  })
})

describe('GATEWAY_RATE_PER_S', () => {
  const withRate = (perS: number, { ctx } = rig.service): ServiceContext => ({
    ...ctx,
    config: { ...ctx.config, GATEWAY_RATE_PER_S: perS },
  })
  const pay = (until: string) => rig.database.sql`
    update merchant_accounts set paid_until = now() + ${until}::interval where merchant_code = ${A}`
  // The last permits of the test before may be paid for until a moment from now.
  beforeEach(async () => {
    await rig.database.sql`update merchant_accounts set paid_until = now()`
  })

  it('claims nothing of an account whose permits are used up far ahead, and of the other as before', async () => {
    await pay('1 minute')
    for (const account of [A, B]) await storm(account, 1, 0)
    expect(await claim(16, withRate(10))).toEqual({ A: 0, B: 1 })
  })

  it('bounds the calls of an account over all processes, each account on its own', async () => {
    const contexts = [withRate(20), withRate(20, await startOther())]
    for (const account of [A, B]) await storm(account, 100, 0)
    const started = performance.now()
    const claimed: { A: number; B: number }[] = []
    while (performance.now() - started < 600) {
      const rounds = await Promise.all(contexts.map((ctx) => claimDue(ctx, 16)))
      claimed.push(countBy(rounds.flat()))
    }
    const tookS = (performance.now() - started) / 1_000
    for (const account of ['A', 'B'] as const) {
      const total = claimed.reduce((sum, round) => sum + round[account], 0)
      // One at the start, then one every 50 ms.
      expect(total).toBeLessThanOrEqual(Math.floor(tookS * 20) + 1)
      expect(total).toBeGreaterThanOrEqual(5)
    }
  })

  it('counts the refund that a claim leads to, and takes no second permit for it', async () => {
    const ctx = withRate(1)
    await storm(A, 2, 1)
    expect(await claimDue(ctx, 16)).toMatchObject([{ merchantCode: A }])
    expect(await claimDue(ctx, 16)).toEqual([])
    const ahead = async () => {
      const [row] = await rig.database.sql<{ s: number }[]>`
        select extract(epoch from paid_until - now())::float8 as s from merchant_accounts where merchant_code = ${A}`
      return row?.s ?? 0
    }
    expect(await ahead()).toBeLessThanOrEqual(1)
    for (const n of [1, 2]) {
      await seedPayment(rig.database, {
        ...{ paymentId: `P-${n}`, transactionId: `S-${n}`, paymentMethod: 'CC' },
      })
      const asked = { url: rig.service.url, query: `?merchantCode=${A}` }
      expect((await ask(asked, `P-${n}`, { amount: '1' })).status).toBe(202)
    }
    await pay('0 s')
    expect(await claimDue(ctx, 16)).toHaveLength(1)
    expect(await ahead()).toBeGreaterThan(1)
  })

  it('off, no account is locked or throttled', async () => {
    await storm(A, 3, 1)
    const before = await rig.database.sql`select paid_until::text from merchant_accounts`
    expect(await claimDue(rig.service.ctx, 16)).toHaveLength(3)
    expect(await rig.database.sql`select paid_until::text from merchant_accounts`).toEqual(before)
  })
})
