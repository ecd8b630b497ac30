import { describe, expect, it } from 'vitest'
import { createDeleteExpired } from '../../../src/maintenance/delete-expired.ts'
import { Refund } from '../../../src/refunds/view.ts'
import type { Service } from '../../../src/service.ts'
import { syncDue } from '../../../src/sync/sync-due.ts'
import { TimelineEntry } from '../../../src/transactions/timeline.ts'
import { readPage } from '../../support/api.ts'
import { expectUnblocked, whileUncommitted } from '../../support/locks.ts'
import { MERCHANT, startTestService } from '../../support/service.ts'
import { countQueries, makeTransaction, notifyOf, syncAgain } from '../../support/sync.ts'
import { useFreshLab, useStarted } from '../../support/use-started.ts'
import { waitUntil } from '../../support/wait-until.ts'

/** Two processes on one database, neither with a loop that competes with the test. */
const lab = useFreshLab()
const other = useStarted(
  () => startTestService(lab.database, lab.sandbox.url, { settings: { ROLE: 'web' } }),
  (service) => service.stop(),
)

/** Ages every row under retention by that many days. */
async function age(days: number) {
  const { sql } = lab.database
  await sql`
    update ipn_events set first_received_at = first_received_at - ${days} * interval '1 day',
      last_received_at = last_received_at - ${days} * interval '1 day'`
  await sql`update gateway_calls set sent_at = sent_at - ${days} * interval '1 day'`
}

const removal = ({ ctx }: Pick<Service, 'ctx'> = lab.service) => createDeleteExpired(ctx)

/** Rows of a table. */
async function count(table: string): Promise<number> {
  const [row] = await lab.database.sql<{ n: number }[]>`
    select count(*) as n from ${lab.database.sql(table)}`
  return row?.n ?? 0
}

/** Notifications about unknown transactions, received so many days ago. */
async function seed(rows: number, days: number) {
  await lab.database.sql`
    insert into ipn_events (merchant_code, text_hash, kind, transaction_id, verdict, body, address, deliveries, first_received_at, last_received_at)
    select ${MERCHANT.merchantCode}, gen_random_uuid(), 'payment', 'T-' || n, 'verified',
      '{}', '', 1, now() - ${days} * interval '1 day', now() - ${days} * interval '1 day'
    from generate_series(1, ${rows}) as n`
}

async function readTimeline(id: string) {
  const page = await readPage(await lab.api(`/v1/transactions/${id}/timeline`))
  return page.data.map((entry) => TimelineEntry.parse(entry))
}

describe('a row older than RETENTION_DAYS', () => {
  it('is deleted if it is a notification or a call; payments, refunds and changes stay', async () => {
    const payment = await lab.open()
    const refundId = await lab.send(payment, '30')
    await lab.settle(refundId)
    await lab.notify(payment, refundId, '30')
    await lab.pass(payment)
    const kept = ['transactions', 'payments', 'refunds', 'refund_attempts', 'changes']
    const before = await Promise.all(kept.map(count))
    const calls = await count('gateway_calls')
    await age(399)
    expect(await removal()()).toBe(0)
    await age(2)
    expect(await removal()()).toBe(calls + 1)
    expect([await count('ipn_events'), await count('gateway_calls')]).toEqual([0, 0])
    expect(await Promise.all(kept.map(count))).toEqual(before)
  })

  it('stays if it is a verified notification of a refund whose payment is not known yet', async () => {
    const unknown = { id: 'P-LATER', transactionId: 'T-LATER' }
    await lab.notify(unknown, 'portal-1', '30')
    await age(401)
    await removal()()
    expect(await count('ipn_events')).toBe(1)
  })

  it('stays while it may decide a refund that has not ended: of its transaction, or with its request id', async () => {
    const payment = await lab.open()
    const refundId = await lab.send(payment, '30')
    await notifyOf(lab, payment.transactionId, { svc_CurrencyCode: 'VND' })
    const unknown = { id: 'P-OTHER', transactionId: 'T-OTHER' }
    await lab.notify(unknown, refundId.toUpperCase(), '30')
    await notifyOf(lab, unknown.transactionId)
    await lab.database.sql`update ipn_events set handled_at = now() where kind = 'refund'`
    await age(401)
    await removal()()
    const left = await lab.database.sql`
      select transaction_id as "transactionId", request_id as "requestId" from ipn_events order by id`
    expect(left).toEqual([
      { transactionId: payment.transactionId, requestId: null },
      { transactionId: null, requestId: refundId.toUpperCase() },
    ])
    await lab.database
      .sql`update refunds set status = 'failed', failure_source = 'service', due_at = null`
    await removal()()
    expect(await count('ipn_events')).toBe(0)
  })

  it('is marked as deleted in the proof of a refund, whose causes stay', async () => {
    const payment = await lab.open()
    const refundId = await lab.send(payment, '30')
    await lab.notify(payment, refundId, '30')
    await lab.pass(payment)
    const read = async () => {
      const response = await lab.api(`/v1/refunds/${refundId}?include=proof`)
      const { proof } = Refund.parse(await response.json())
      if (!proof) throw new Error('no proof')
      return proof
    }
    const proof = await read()
    expect(proof.attempts).toMatchObject([{ snapshotBefore: { payments: [{ id: payment.id }] } }])
    expect(proof.transitions.at(-1)?.notification).toMatchObject({ code: '0' })
    await age(401)
    await removal()()
    const removed = { removed: true }
    expect(await read()).toEqual({
      ...proof,
      indications: proof.indications.filter(({ kind }) => kind !== 'notification'),
      attempts: proof.attempts.map((one) => ({ ...one, snapshotBefore: removed })),
      transitions: proof.transitions.map((one) => ({
        ...one,
        snapshot: one.snapshot && removed,
        notification: one.notification && removed,
      })),
    })
  })

  it('is gone from the timeline, which still has every change', async () => {
    await makeTransaction(lab, 'T-KNOWN')
    await notifyOf(lab, 'T-KNOWN')
    await notifyOf(lab, 'T-KNOWN')
    await syncDue(lab.service.ctx)
    const before = await readTimeline('T-KNOWN')
    expect(before.map(({ type }) => type)).toEqual(['ipn', 'query', 'change', 'change'])
    await age(401)
    await notifyOf(lab, 'T-KNOWN', { svc_OrderID: 'young' })
    await removal()()
    const after = await readTimeline('T-KNOWN')
    expect(after.map(({ type }) => type)).toEqual(['change', 'change', 'ipn'])
    expect(after.slice(0, 2)).toEqual(before.slice(2))
    expect(await lab.transaction('T-KNOWN')).toMatchObject({ ipnCount: 3, state: 'paid' })
  })

  it('that is received again counts as new, and causes a query', async () => {
    await makeTransaction(lab, 'T-LATE')
    await notifyOf(lab, 'T-LATE')
    await syncDue(lab.service.ctx)
    await age(401)
    await removal()()
    await notifyOf(lab, 'T-LATE')
    await syncAgain(lab, 'T-LATE')
    expect(await countQueries(lab, 'T-LATE')).toBe(2)
    expect(await lab.transaction('T-LATE')).toMatchObject({ state: 'paid', ipnCount: 2 })
  })

  it('that was received again since stays', async () => {
    await notifyOf(lab, 'T-TWICE')
    await age(401)
    await notifyOf(lab, 'T-TWICE')
    await removal()()
    expect(await count('ipn_events')).toBe(1)
  })
})

describe('the pass', () => {
  it('deletes batches of a thousand rows, oldest first, and leaves younger ones', async () => {
    await seed(2_500, 500)
    await seed(100, 1)
    const remove = removal()
    const removed = [await remove(), await remove(), await remove(), await remove()]
    expect(removed).toEqual([1_000, 1_000, 500, 0])
    expect(await count('ipn_events')).toBe(100)
    await age(400)
    expect(await remove()).toBe(100)
  })

  it('reads no more than one batch of younger rows', async () => {
    await seed(1_000, 1)
    await seed(5, 500)
    const remove = removal()
    expect([await remove(), await remove()]).toEqual([0, 0])
  })

  it('in two processes at once deletes every row', async () => {
    await seed(3_000, 500)
    const run = async (remove: () => Promise<number>) => {
      while ((await remove()) > 0);
    }
    await Promise.all([run(removal()), run(removal(other))])
    expect(await count('ipn_events')).toBe(0)
  })

  it('waits for no lock: a locked row is skipped, and deleted later', async () => {
    await seed(2_001, 500)
    const { database } = lab
    const remove = removal()
    const hold = (held: typeof database.sql) =>
      held`select from ipn_events where id in (select id from ipn_events order by id limit 1000) for update`
    await whileUncommitted(database, hold, async () => {
      // A whole batch of locked rows does not end the pass.
      for (const seen of [1_000, 1_000, 1, 0]) {
        expect(await expectUnblocked(database, remove())).toBe(seen)
      }
      expect(await count('ipn_events')).toBe(1_000)
    })
    await remove()
    expect(await count('ipn_events')).toBe(0)
  })

  it('ends although its second table failed once, with rows that are kept in both', async () => {
    const { sql } = lab.database
    const payment = await lab.open()
    await lab.send(payment, '30')
    await notifyOf(lab, payment.transactionId, { svc_CurrencyCode: 'VND' })
    await age(401)
    const kept = [await count('ipn_events'), await count('gateway_calls')]
    const remove = removal()
    await sql`alter table gateway_calls rename to gateway_calls_away`
    await expect(remove()).rejects.toThrow('gateway_calls')
    await sql`alter table gateway_calls_away rename to gateway_calls`
    const seen = [await remove(), await remove(), await remove(), await remove()]
    expect(seen).toContain(0)
    expect([await count('ipn_events'), await count('gateway_calls')]).toEqual(kept)
  })

  it('is run by a worker', async () => {
    await seed(1_500, 31)
    await seed(10, 29)
    const settings = { ROLE: 'worker', RETENTION_DAYS: '30' }
    const worker = await startTestService(lab.database, lab.sandbox.url, { settings })
    try {
      await waitUntil(async () => (await count('ipn_events')) === 10, { what: 'the removal' })
    } finally {
      await worker.stop()
    }
  })
})
