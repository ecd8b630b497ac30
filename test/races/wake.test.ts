import { beforeEach, describe, expect, it } from 'vitest'
import { SYNC_DUE } from '../../src/db/names.ts'
import { createInbox } from '../../src/ipn/inbox.ts'
import type { ReceivedNotification } from '../../src/ipn/store.ts'
import { notify } from '../../src/platform/postgres/notify.ts'
import { makePaymentArrival } from '../support/arrivals.ts'
import { emptyTables } from '../support/database.ts'
import { waitUntilBlocked, whileUncommitted } from '../support/locks.ts'
import { MERCHANT, startTestService } from '../support/service.ts'
import { makeTransaction, notifyOf } from '../support/sync.ts'
import { useRig } from '../support/use-started.ts'
import { waitUntil } from '../support/wait-until.ts'

const rig = useRig({ settings: { ROLE: 'web' } })
beforeEach(() => emptyTables(rig.database))

/** A notification as the inbox receives it; `from` makes its bytes differ. */
function arrive(transactionId: string, from = ''): ReceivedNotification {
  return makePaymentArrival(MERCHANT.merchantCode, transactionId, `${transactionId} ${from}`)
}

describe('the intake', () => {
  it('wakes the sync once per commit, however many notifications share it', async () => {
    const heard: string[] = []
    const { unlisten } = await rig.database.sql.listen(SYNC_DUE, (text) => heard.push(text))
    const { inbox, db } = rig.service.ctx
    // What an earlier test caused is sent in the same order.
    notify(db.sql, SYNC_DUE, 'first')
    await waitUntil(() => heard.includes('first'), { what: 'all that was sent before' })
    heard.length = 0
    await Promise.all(Array.from({ length: 300 }, (_, n) => inbox.store(arrive(`T-${n}`))))
    await waitUntil(() => heard.length > 0, { what: 'the wake-up after the commit' })
    await rig.database.sql.notify(SYNC_DUE, 'last')
    await waitUntil(() => heard.includes('last'), { what: 'all that the commits caused' })
    await unlisten()
    const [row] = await rig.database.sql`select count(distinct xmin::text) as n from ipn_events`
    expect(row?.n).toBe(1)
    expect(heard).toEqual(['', 'last'])
  })

  it('locks rows in the order of their keys, so that batches never deadlock', async () => {
    const { db, config, inbox: first } = rig.service.ctx
    const second = createInbox(db.sql, config.inboxPatience)
    await Promise.all(['T-A', 'T-M', 'T-Z'].map((id) => first.store(arrive(id))))
    await whileUncommitted(
      rig.database,
      (held) => held`select from transactions where transaction_id = 'T-M' for update`,
      async (commit) => {
        // Notifications added in one turn share a commit.
        const stored = ['T-0', 'T-A', 'T-M', 'T-Z'].map((id) => first.store(arrive(id, '1')))
        await waitUntilBlocked(rig.database, 1)
        const reversed = ['T-1', 'T-Z', 'T-M', 'T-A'].map((id) => second.store(arrive(id, '2')))
        await waitUntilBlocked(rig.database, 2)
        // The second waits for T-A, which the first holds, and holds nothing the first still needs.
        const free = await rig.database.sql`
          select from transactions where transaction_id = 'T-Z' for update skip locked`
        expect(free).toHaveLength(1)
        await commit()
        await Promise.all([...stored, ...reversed])
      },
    )
    const rows = await rig.database.sql`
      select ipn_count as n from transactions where transaction_id in ('T-A', 'T-M', 'T-Z')`
    expect(rows.map(({ n }) => n)).toEqual([3, 3, 3])
  })
})

describe('a worker in another process', () => {
  it('is woken by the commit of a notification: it queries long before its next poll', async () => {
    const worker = await startTestService(rig.database, rig.sandbox.url, {
      settings: { ROLE: 'worker' },
    })
    try {
      const settle = async (id: string) => {
        await makeTransaction(rig, id)
        await notifyOf(rig, id)
        expect(await rig.transaction(id, '?wait=20')).toMatchObject({ state: 'paid' })
      }
      for (const id of ['W-1', 'W-2', 'W-3', 'W-4', 'W-5']) await settle(id)
      // Without NOTIFY it polls a second after its last round: the fastest of five proves the wake-up, even on a slow machine.
      const [waited] = await rig.database.sql<{ ms: number }[]>`
        select min(extract(epoch from queried_at - asked_for_at) * 1000)::float8 as ms from transactions`
      expect(waited?.ms).toBeLessThan(300)
    } finally {
      await worker.stop()
    }
  })
})
