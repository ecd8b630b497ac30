import { randomUUID } from 'node:crypto'
import { afterEach, expect, it } from 'vitest'
import { createBreakers } from '../../../src/gateway/breakers.ts'
import { claimDue, findNextDue } from '../../../src/sync/claim-due.ts'
import { beginSync } from '../../../src/sync/sync-due.ts'
import { MAX_WAITING } from '../../../src/transactions/request-sync.ts'
import { expectProblem, withKey } from '../../support/api.ts'
import { addKey, MERCHANT } from '../../support/service.ts'
import { clearRig, useRig } from '../../support/use-started.ts'
import { waitUntil } from '../../support/wait-until.ts'

const rig = useRig({ settings: { ROLE: 'web', GATEWAY_MAX_CONCURRENCY: '8' } })
afterEach(() => clearRig(rig))

/** Inserts transactions that have been due for `sinceS` seconds. */
const store = (prefix: string, count: number, unconfirmed: boolean, sinceS: number) =>
  rig.database.sql`
    insert into transactions (merchant_code, transaction_id, unconfirmed, due_at)
    select ${MERCHANT.merchantCode}, ${prefix} || i, ${unconfirmed}, now() - ${sinceS} * interval '1 s'
    from generate_series(1, ${count}::int) as i`

const claim = async (slots: number, ctx = rig.service.ctx) => {
  const claims = await claimDue(ctx, slots)
  const unconfirmed = claims.filter((one) => one.unconfirmed).length
  return { unconfirmed, confirmed: claims.length - unconfirmed }
}

it('unknown ids are claimed after all others, however long they have been due, but one is always under way', async () => {
  const { unconfirmedQueries } = rig.service.ctx
  await store('U-', 500, true, 3_600)
  await store('T-', 20, false, 0)
  expect(await claim(4)).toEqual({ unconfirmed: 1, confirmed: 3 })
  unconfirmedQueries.running = 1
  expect(await claim(4)).toEqual({ unconfirmed: 0, confirmed: 4 })
  expect(await claim(20)).toEqual({ unconfirmed: 3, confirmed: 13 })
  unconfirmedQueries.running = 4
  expect(await claim(8)).toEqual({ unconfirmed: 0, confirmed: 0 })
  expect(await findNextDue(rig.service.ctx, 60_000)).toBeGreaterThan(10_000)
  unconfirmedQueries.running = 0
})

it('unknown ids take half of the call slots at most, and give them back', async () => {
  const { ctx } = rig.service
  await store('U-', 20, true, 60)
  const round = await beginSync(ctx)
  expect(round.count).toBe(4)
  expect(ctx.unconfirmedQueries.running).toBe(4)
  await round.finished
  expect(ctx.unconfirmedQueries.running).toBe(0)
})

it('an unknown id does not probe a gateway in place of a known one, which may be all that it answers', async () => {
  const { ctx } = rig.service
  const breakers = createBreakers({ failures: 1, pauseMs: 1, maxPauseMs: 1, untestedMs: 1_000 })
  const breaker = breakers.of(MERCHANT.merchantCode, 'query')
  breaker.tryAcquire()?.fail()
  await waitUntil(() => breaker.state() === 'half-open', { what: 'the end of the pause' })
  const paused = { ...ctx, gateway: { ...ctx.gateway, breakers } }
  await store('U-', 20, true, 60)
  await store('T-', 1, false, 0)
  expect(await claim(8, paused)).toEqual({ unconfirmed: 0, confirmed: 1 })
  expect(await claim(8, paused)).toEqual({ unconfirmed: 1, confirmed: 0 })
})

it.each([
  ['call slot', 1, 0],
  ['permit', 8, 1],
])('unknown ids and others take turns where one %s is free', async (_, slots, perS) => {
  const { ctx } = rig.service
  const limited = { ...ctx, config: { ...ctx.config, GATEWAY_RATE_PER_S: perS } }
  await store('U-', 40, true, 60)
  await store('T-', 40, false, 0)
  const total = { unconfirmed: 0, confirmed: 0 }
  for (let n = 0; n < 30; n += 1) {
    await rig.database.sql`update merchant_accounts set paid_until = now()`
    const { unconfirmed, confirmed } = await claim(slots, limited)
    expect(unconfirmed + confirmed).toBe(1)
    total.unconfirmed += unconfirmed
    total.confirmed += confirmed
  }
  // By chance: all of one kind would be one case in a billion.
  expect(total.unconfirmed).toBeGreaterThan(0)
  expect(total.confirmed).toBeGreaterThan(0)
})

it('a key has a bounded number of unknown ids waiting; what is known and other keys are not refused', async () => {
  const [key, other] = [randomUUID(), randomUUID()]
  await addKey(rig.database, key, ['payments:read'])
  await addKey(rig.database, other, ['payments:read'])
  const sync = (id: string, by = key) =>
    fetch(`${rig.service.url}/v1/transactions/${id}/sync`, { method: 'POST', ...withKey(by) })
  await store('T-', 1, false, 0)
  expect((await sync('U-first')).status).toBe(202)
  await store('U-', MAX_WAITING.ofKey - 1, true, 60)
  expect((await sync('U-second')).status).toBe(202)
  await rig.database.sql`
    update transactions set asked_by = (select asked_by from transactions where transaction_id = 'U-first')
    where unconfirmed`
  const refused = await sync('U-third')
  expect(refused.headers.get('retry-after')).toBe('5')
  await expectProblem(refused, 429, 'too_many_unconfirmed')
  expect((await sync('T-1')).status).toBe(202)
  expect((await sync('U-third', other)).status).toBe(202)
  await store('V-', MAX_WAITING.ofAccount, true, 60)
  await expectProblem(await sync('U-fourth', other), 429, 'too_many_unconfirmed')
  // Those that were asked about, and wait to be asked about again, do not count.
  await rig.database
    .sql`update transactions set due_at = now() + interval '1 hour' where unconfirmed`
  expect((await sync('U-fourth')).status).toBe(202)
})
