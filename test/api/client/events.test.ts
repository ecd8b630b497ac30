import {
  type ClientOptions,
  CursorExpiredError,
  type EventType,
  type FollowedEvent,
  type Following,
  ForbiddenError,
} from '@ipn-processor/client'
import { beforeEach, describe, expect, it } from 'vitest'
import { connectFaulty } from '../../support/faulty-fetch.ts'
import { readAllEvents } from '../../support/feed.ts'
import { pickPort } from '../../support/ports.ts'
import { addKey, startTestService } from '../../support/service.ts'
import { useRig } from '../../support/use-started.ts'
import { waitUntil } from '../../support/wait-until.ts'

const rig = useRig()

/** The cursor of the feed's end before the test. */
let start: string
beforeEach(async () => {
  start = (await readAllEvents(rig)).at(-1)?.id ?? '0'
})

const connect = ({ baseUrl = rig.service.url, ...options }: Partial<ClientOptions> = {}) =>
  connectFaulty(baseUrl, { retries: 0, ...options })

/** Makes a payment, which causes `payment.created`, `transaction.final` and possibly other events. */
async function pay(): Promise<void> {
  const payments = [{ amount: '10000.50', paymentMethod: 'CC', status: 'SUCCESS' }]
  await rig.control('POST', '/transactions', { payments })
}

/** Returns the ids of the events since `start`, once that many transactions are final. */
async function waitForEvents(transactions: number): Promise<string[]> {
  const readEvents = async () => await readAllEvents(rig, start)
  const ends = async () => (await readEvents()).filter(({ type }) => type === 'transaction.final')
  const what = `events of ${transactions} final transactions`
  await waitUntil(async () => (await ends()).length === transactions, { what })
  return (await readEvents()).map(({ id }) => id)
}

/** Reads `count` events. */
async function take(following: Following, count: number): Promise<FollowedEvent[]> {
  const events: FollowedEvent[] = []
  if (count === 0) return events
  for await (const event of following) {
    events.push(event)
    if (events.length === count) break
  }
  return events
}

describe('following the feed', () => {
  it('from stored cursors, over lost responses and pages, yields each event exactly once', async () => {
    const { client, faults } = connect()
    for (let n = 0; n < 4; n += 1) await pay()
    const all = await waitForEvents(4)
    expect(all.length).toBeGreaterThan(6)
    const met: string[] = []
    let after = start
    for (const count of [3, 1, all.length - 4]) {
      faults.push('lose_answer', 'refuse')
      const events = await take(client.events.follow({ after, limit: 2 }), count)
      met.push(...events.map(({ id }) => id))
      after = events.at(-1)?.cursor ?? after
    }
    expect(met).toEqual(all)
  })

  it('yields events of the given types, with objects in the form of their own routes', async () => {
    const { client } = connect()
    await pay()
    await waitForEvents(1)
    const following = client.events.follow({ after: start, types: ['payment.created'] })
    const [event] = await take(following, 1)
    if (event?.type !== 'payment.created') throw new Error('another type')
    expect(event.data.amount).toBe('10000.50')
    expect(await client.payments.get(event.data.id)).toEqual(event.data)
  })

  it('from `latest` on, asks for the end once: what happens while an answer is lost is not skipped', async () => {
    const { client, faults, seen } = connect()
    await pay()
    const before = await waitForEvents(1)
    const following = client.events.follow({ after: 'latest', types: ['payment.created'] })
    const end = { data: [], nextCursor: before.at(-1) }
    faults.push(() => new Response(JSON.stringify(end)), 'lose_answer')
    const walk = take(following, 1)
    await waitUntil(() => seen.length > 1, { what: 'the second request' })
    await pay()
    const all = await waitForEvents(2)
    const [event] = await walk
    expect(before).not.toContain(event?.id)
    expect(all).toContain(event?.id)
    const asked = seen.map(({ url }) => url.searchParams.get('after'))
    expect(asked.filter((after) => after === 'latest')).toHaveLength(1)
  })

  it('advances the cursor past events of other types and continues from there', async () => {
    const { client, faults, seen } = connect()
    await pay()
    const all = await waitForEvents(1)
    const end = new AbortController()
    // The service answers like this when a wait for rare events ends without one.
    const page = { data: [], nextCursor: all.at(-1) }
    faults.push(() => new Response(JSON.stringify(page)))
    const types: EventType[] = ['discrepancy.found']
    const following = client.events.follow({ after: start, types, signal: end.signal })
    const walk = take(following, 1)
    await waitUntil(() => seen.length === 2, { what: 'the second request' })
    expect(seen.map(({ url }) => url.searchParams.get('after'))).toEqual([start, all.at(-1)])
    expect(seen[1]?.url.searchParams.get('types')).toBe('discrepancy.found')
    expect(following.cursor).toBe(all.at(-1))
    const last = { data: [{ id: '1' }, { id: '2' }], nextCursor: '9' }
    faults.push(() => new Response(JSON.stringify(last)))
    const events = await take(client.events.follow(), 2)
    expect(events.map(({ cursor }) => cursor)).toEqual(['1', '9'])
    end.abort()
    expect(await walk).toEqual([])
  })

  it('survives a restart of the service', async () => {
    const settings = { PORT: await pickPort() }
    const first = await startTestService(rig.database, rig.sandbox.url, { settings })
    const { client, seen } = connect({ baseUrl: first.url })
    const following = client.events.follow({ after: start, types: ['transaction.final'] })
    const walk = take(following, 2)
    await pay()
    await waitForEvents(1)
    await waitUntil(() => following.cursor !== start || seen.length > 1, { what: 'the first' })
    await first.stop()
    const tries = seen.length
    await waitUntil(() => seen.length > tries, { what: 'a failed attempt' })
    const second = await startTestService(rig.database, rig.sandbox.url, { settings })
    try {
      await pay()
      const all = await waitForEvents(2)
      expect((await walk).map(({ id }) => all.includes(id))).toEqual([true, true])
    } finally {
      await second.stop()
    }
  })

  it('ends without an error when the signal is aborted during a wait', async () => {
    const { client, seen } = connect()
    const end = new AbortController()
    const walk = take(client.events.follow({ after: start, signal: end.signal }), 1)
    await waitUntil(() => seen.length === 1, { what: 'it waits' })
    end.abort()
    expect(await walk).toEqual([])
  })

  it('throws if the cursor has expired, or the key lacks the scope of a type', async () => {
    const key = 'key-that-may-read-payments-only-0123456789'
    await addKey(rig.database, key, ['payments:read'])
    const { client } = connect({ apiKey: key })
    const refunds = client.events.follow({ after: start, types: ['refund.updated'] })
    await expect(take(refunds, 1)).rejects.toThrow(ForbiddenError)
    await pay()
    const [oldest = ''] = await waitForEvents(1)
    const { sql } = rig.database
    await sql`
      insert into event_removals (removed_up_to) values (${oldest}::bigint)
      on conflict ("only") do update set removed_up_to = excluded.removed_up_to`
    try {
      const before = String(Number(oldest) - 1)
      await expect(take(client.events.follow({ after: before }), 1)).rejects.toThrow(
        CursorExpiredError,
      )
    } finally {
      await sql`update event_removals set removed_up_to = 0`
    }
  })
})

it('a page of events is held until there is one', async () => {
  const { client } = connect()
  const types: EventType[] = ['payment.created']
  const waiting = client.events.list({ after: start, types, wait: 30 })
  await pay()
  const { data, nextCursor } = await waiting
  expect(data).toMatchObject([{ type: 'payment.created', data: { amount: '10000.50' } }])
  expect(Number(nextCursor)).toBeGreaterThanOrEqual(Number(data[0]?.id))
  const all = await waitForEvents(1)
  const empty = await client.events.list({ after: all.at(-1) ?? '' })
  expect(empty).toEqual({ data: [], nextCursor: all.at(-1) })
})
