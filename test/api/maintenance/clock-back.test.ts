import { afterEach, describe, expect, it } from 'vitest'
import { followClock } from '../../../src/maintenance/housekeeping.ts'
import { syncDue } from '../../../src/sync/sync-due.ts'
import { serve } from '../../support/gateway.ts'
import { keepLog, makeTransaction, notifyOf, readItem, syncAgain } from '../../support/sync.ts'
import { clearRig, useRig } from '../../support/use-started.ts'
import { publish, register, useWebhookRig, work } from '../../support/webhooks.ts'

const rig = useRig({ settings: { ROLE: 'web', GATEWAY_RATE_PER_S: '20' } })
const webhooks = useWebhookRig(keepLog().log)
afterEach(() => clearRig(rig))

/** As if the database's clock went back by an hour: what is stored is later by as much. */
async function setClockBack({ database: { sql } }: typeof rig, table: string, columns: string[]) {
  const shifts = columns.map((column) => `${column} = ${column} + interval '1 hour'`)
  await sql.unsafe(`update ${table} set ${shifts.join()}`)
}

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

  it('the calls of an account go on', async () => {
    const sync = async (id: string) => {
      await makeTransaction(rig, id)
      await notifyOf(rig, id)
      return await syncDue(rig.service.ctx)
    }
    expect(await sync('T-2')).toBe(1)
    await setClockBack(rig, 'merchant_accounts', ['paid_until'])
    expect(await sync('T-3')).toBe(0)
    await followClock(rig.service.ctx)
    expect(await syncDue(rig.service.ctx)).toBe(1)
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
