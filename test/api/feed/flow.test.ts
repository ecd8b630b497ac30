import { expect, it } from 'vitest'
import { readAllEvents, readEvents } from '../../support/feed.ts'
import { startTestService } from '../../support/service.ts'
import { makeTransaction, notifyOf } from '../../support/sync.ts'
import { useRig } from '../../support/use-started.ts'
import { waitUntil } from '../../support/wait-until.ts'

const rig = useRig({ settings: { ROLE: 'web' } })

const TYPES = ['payment.created', 'transaction.paid', 'transaction.final']

const unpublished = async () => {
  const text = await (await fetch(`${rig.service.url}/metrics`)).text()
  return /^events_unpublished (\d+)$/m.exec(text)?.[1]
}

it('from a notification to a waiting reader: the commit wakes the publisher, which wakes the reader', async () => {
  const { database, sandbox } = rig
  await database.sql`
    insert into event_outbox (merchant_code, transaction_id, type, data)
    values ('NOBODY', 'T', 'payment.updated', '{}'), ('NOBODY', 'T', 'payment.updated', '{}')`
  expect(await unpublished()).toBe('2')
  const workers = [1, 2].map(() =>
    startTestService(database, sandbox.url, { settings: { ROLE: 'worker' } }),
  )
  try {
    await Promise.all(workers)
    await waitUntil(async () => (await unpublished()) === '0', { what: 'the events left over' })
    const { nextCursor: start } = await readEvents(await rig.api('/v1/events?after=latest'))
    let cursor = start
    const waits: number[] = []
    for (const id of ['T-1', 'T-2', 'T-3', 'T-4']) {
      await makeTransaction(rig, id)
      const began = performance.now()
      const answer = rig.api(`/v1/events?after=${cursor}&wait=60`)
      await notifyOf(rig, id)
      const page = await readEvents(await answer)
      waits.push(performance.now() - began)
      expect(page.data.map(({ transactionId }) => transactionId)).toEqual([id, id, id])
      cursor = page.nextCursor
    }
    // Polling alone takes up to 5 s; the quickest of four is conclusive even on a slow machine.
    expect(Math.min(...waits.slice(1))).toBeLessThan(3_000)
    const all = await readAllEvents(rig, start)
    expect(all.map(({ type }) => type)).toEqual(all.map((_, index) => TYPES[index % TYPES.length]))
  } finally {
    for (const worker of workers) await (await worker).stop()
  }
})
