import { randomUUID } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import { afterEach, describe, expect, it, onTestFinished, vi } from 'vitest'
import { writeSeen } from '../../../src/db/processes.ts'
import { followClock } from '../../../src/maintenance/housekeeping.ts'
import { releaseUnseen } from '../../../src/maintenance/processes.ts'
import { claimDue, leaseMs } from '../../../src/sync/claim-due.ts'
import { syncDue } from '../../../src/sync/sync-due.ts'
import { serve } from '../../support/gateway.ts'
import { waitUntilBlocked, whileUncommitted } from '../../support/locks.ts'
import { changeLifecycle } from '../../support/service.ts'
import { keepLog, makeTransaction, notifyOf, readItem, syncAgain } from '../../support/sync.ts'
import { clearRig, useRig } from '../../support/use-started.ts'
import { waitUntil } from '../../support/wait-until.ts'
import { publish, register, useWebhookRig, work } from '../../support/webhooks.ts'

const rig = useRig({ settings: { ROLE: 'web', GATEWAY_RATE_PER_S: '20' } })
const webhooks = useWebhookRig(keepLog().log)
afterEach(() => clearRig(rig))

/** As if the database's clock went back by an hour: what is stored is later by as much. */
async function setClockBack({ database: { sql } }: typeof rig, table: string, columns: string[]) {
  const shifts = columns.map((column) => `${column} = ${column} + interval '1 hour'`)
  await sql.unsafe(`update ${table} set ${shifts.join()}`)
}

/** Another process; it and the one of the test, and no third, have been seen just now. */
async function startOther() {
  const { ctx } = rig.service
  const other = changeLifecycle(ctx, { processId: randomUUID() })
  await rig.database.sql`delete from processes`
  for (const one of [ctx, other]) await writeSeen(one)
  return other
}

async function claimAs(ctx: typeof rig.service.ctx, transactionId: string): Promise<void> {
  await makeTransaction(rig, transactionId)
  await notifyOf(rig, transactionId)
  // The rate of the account may have been used up.
  const what = `${transactionId} is claimed`
  await waitUntil(async () => (await claimDue(ctx, 1)).length === 1, { what })
}

it('a database that answers late is not one whose clock went back', async () => {
  const { ctx } = rig.service
  const kept = keepLog()
  await startOther()
  await whileUncommitted(
    rig.database,
    async (held) => {
      await held`lock table processes in access exclusive mode`
      await held`update processes set seen_at = clock_timestamp() + interval '3 s'`
    },
    async (commit) => {
      const followed = followClock({ ...ctx, log: kept.log })
      await waitUntilBlocked(rig.database)
      await pause(3_000)
      await commit()
      await followed
    },
  )
  expect(kept.text()).toBe('[]')
})

describe("once the database's clock went back by an hour", () => {
  it('a transaction that is notified is due within the gap of a burst', async () => {
    await makeTransaction(rig, 'T-1', [{ status: 'PROCESSING' }])
    await notifyOf(rig, 'T-1')
    await syncAgain(rig, 'T-1')
    await setClockBack(rig, 'transactions', ['queried_at', 'due_at'])
    await notifyOf(rig, 'T-1', { svc_Amount: 1 })
    const { dueInMs, gapMs } = await readItem(rig, 'T-1')
    expect(gapMs).toBe(50)
    expect(dueInMs).toBeLessThanOrEqual(50)
  })

  it('a transaction that is notified during its query is due within the gap of a burst', async () => {
    const { ctx } = rig.service
    await makeTransaction(rig, 'T-11', [{ status: 'PROCESSING' }])
    await notifyOf(rig, 'T-11')
    const query = ctx.gateway.queryPayments
    vi.spyOn(ctx.gateway, 'queryPayments').mockImplementation(async (...given) => {
      await setClockBack(rig, 'transactions', ['queried_at', 'due_at'])
      await notifyOf(rig, 'T-11', { svc_Amount: 1 })
      return await query(...given)
    })
    onTestFinished(() => void vi.restoreAllMocks())
    await waitUntil(async () => (await syncDue(ctx)) === 1, { what: 'T-11 is synced' })
    const { dueInMs, gapMs } = await readItem(rig, 'T-11')
    expect(dueInMs).toBeLessThanOrEqual(gapMs)
  })

  it('the calls of an account go on', async () => {
    const { service, database } = rig
    const sync = async (id: string) => {
      await makeTransaction(rig, id)
      await notifyOf(rig, id)
      return await syncDue(service.ctx)
    }
    // Another test may have used up the rate of the account.
    await database.sql`update merchant_accounts set paid_until = now()`
    expect(await sync('T-2')).toBe(1)
    await setClockBack(rig, 'merchant_accounts', ['paid_until'])
    expect(await sync('T-3')).toBe(0)
    await followClock(service.ctx)
    expect(await syncDue(service.ctx)).toBe(1)
  })

  it('a claim of a process that died before is taken over like any other', async () => {
    const { service, database } = rig
    await claimAs(await startOther(), 'T-6')
    await setClockBack(rig, 'transactions', ['queried_at', 'due_at'])
    await setClockBack(rig, 'processes', ['seen_at', 'writing_since'])
    await followClock(service.ctx)
    expect(await releaseUnseen(service.ctx)).toBe(0)
    // As if 13 s had passed in which only this process was seen.
    await database.sql`
      update processes set writing_since = writing_since - interval '13 s', seen_at = case
        when id = ${service.ctx.lifecycle.processId} then now() else seen_at - interval '13 s' end`
    expect(await releaseUnseen(service.ctx)).toBe(1)
    await waitUntil(async () => (await syncDue(service.ctx)) === 1, { what: 'T-6 is synced' })
    expect(await readItem(rig, 'T-6')).toMatchObject({ leased: false, state: 'paid' })
  })

  it('a claim lasts for its usual time from now, even if its process has been seen since', async () => {
    const other = await startOther()
    await claimAs(other, 'T-7')
    await setClockBack(rig, 'transactions', ['queried_at', 'due_at'])
    await setClockBack(rig, 'processes', ['seen_at', 'writing_since'])
    await writeSeen(other)
    await writeSeen(rig.service.ctx)
    await followClock(rig.service.ctx)
    const { leased, dueInMs } = await readItem(rig, 'T-7')
    const longest = leaseMs(rig.service.ctx.config.GATEWAY_TIMEOUT_MS)
    expect(leased).toBe(true)
    expect(dueInMs).toBeLessThanOrEqual(longest)
    expect(dueInMs).toBeGreaterThan(longest - 5_000)
  })

  it('a claim of a process that waits longer for the gateway lasts for its own time', async () => {
    const other = await startOther()
    const config = { ...other.config, GATEWAY_TIMEOUT_MS: 60_000 }
    await claimAs({ ...other, config }, 'T-10')
    await setClockBack(rig, 'transactions', ['queried_at', 'due_at'])
    await setClockBack(rig, 'processes', ['seen_at', 'writing_since'])
    // A pass that stops halfway is repeated.
    await followClock(rig.service.ctx)
    await setClockBack(rig, 'processes', ['seen_at', 'writing_since'])
    await followClock(rig.service.ctx)
    const { dueInMs } = await readItem(rig, 'T-10')
    const longest = leaseMs(config.GATEWAY_TIMEOUT_MS)
    expect(dueInMs).toBeLessThanOrEqual(longest)
    expect(dueInMs).toBeGreaterThan(longest - 30_000)
  })

  it('what was claimed since, and what nobody has claimed, is due when it was', async () => {
    const other = await startOther()
    await setClockBack(rig, 'processes', ['seen_at', 'writing_since'])
    await claimAs(other, 'T-8')
    await rig.database.sql`update transactions set due_at = now() + interval '10 s'`
    await makeTransaction(rig, 'T-9')
    await notifyOf(rig, 'T-9')
    await rig.database.sql`
      update transactions set due_at = now() + interval '1 day' where transaction_id = 'T-9'`
    await followClock(rig.service.ctx)
    expect((await readItem(rig, 'T-8')).dueInMs).toBeLessThanOrEqual(10_000)
    expect((await readItem(rig, 'T-9')).dueInMs).toBeGreaterThan(86_000_000)
  })

  it('a webhook endpoint gets the next event', async () => {
    const { ctx } = webhooks.service
    const receiver = await serve((response) => response.end())
    await register(webhooks, receiver.url)
    for (const id of ['T-4', 'T-5']) {
      await publish(webhooks, [id])
      await followClock(ctx)
      await work(ctx)
      await setClockBack(webhooks, 'webhook_endpoints', ['due_at'])
    }
    expect(receiver.seen).toHaveLength(2)
  })
})
