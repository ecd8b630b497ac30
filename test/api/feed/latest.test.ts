import { describe, expect, it } from 'vitest'
import { publishEvents } from '../../../src/feed/publish-events.ts'
import { EVENT_DATA } from '../../support/event-data.ts'
import { findEnd, openEventStream, readEvents } from '../../support/feed.ts'
import { useRig } from '../../support/use-started.ts'
import { waitUntil } from '../../support/wait-until.ts'

const rig = useRig({ settings: { ROLE: 'web' } })
const countWaiting = () => rig.service.ctx.feedWaiters.count()

async function publish(transactionId: string): Promise<void> {
  const { sql } = rig.database
  await sql`
    insert into event_outbox (merchant_code, transaction_id, type, data)
    values ('UFLIYL', ${transactionId}, 'payment.updated',
      ${JSON.stringify(EVENT_DATA['payment.updated'])}::text::json)`
  await publishEvents(sql)
}

describe('after=latest', () => {
  it('begins at the end: it returns no event, and the cursor of the next one', async () => {
    await publish('T-BEFORE')
    const { data, nextCursor } = await readEvents(await rig.api('/v1/events?after=latest'))
    expect([data, nextCursor]).toEqual([[], await findEnd(rig)])
    await publish('T-AFTER')
    const next = await readEvents(await rig.api(`/v1/events?after=${nextCursor}`))
    expect(next.data.map(({ transactionId }) => transactionId)).toEqual(['T-AFTER'])
  })

  it('waits for the next event', async () => {
    const waiting = rig.api('/v1/events?after=latest&wait=60')
    await waitUntil(() => countWaiting() > 0, { what: 'the reader to wait' })
    await publish('T-WAITED')
    const { data } = await readEvents(await waiting)
    expect(data.map(({ transactionId }) => transactionId)).not.toContain('T-BEFORE')
    expect(data[0]?.transactionId).toBe('T-WAITED')
  })

  it('begins a stream at the end', async () => {
    const stream = await openEventStream(rig, '?after=latest')
    await waitUntil(() => stream.messages.length > 0, { what: 'the start of the stream' })
    await publish('T-STREAMED')
    const ids = () =>
      stream.messages.flatMap(({ data }) =>
        typeof data === 'object' && data !== null && 'transactionId' in data
          ? [data.transactionId]
          : [],
      )
    await waitUntil(() => ids().length > 0, { what: 'the event' })
    stream.leave()
    await waitUntil(() => countWaiting() === 0, { what: 'the end of the stream' })
    expect(ids()).toEqual(['T-STREAMED'])
  })
})
