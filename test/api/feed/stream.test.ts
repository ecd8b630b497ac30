import { getEventListeners } from 'node:events'
import { connect } from 'node:net'
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest'
import { z } from 'zod'
import { type NewEvent, recordEvents } from '../../../src/events/record-events.ts'
import { publishEvents } from '../../../src/feed/publish-events.ts'
import { runInTransaction } from '../../../src/platform/postgres/transaction.ts'
import { expectInvalid, expectProblem, withKey } from '../../support/api.ts'
import { borrowRig } from '../../support/borrow-rig.ts'
import { EVENT_DATA } from '../../support/event-data.ts'
import { type Message, type OpenStream, openEventStream } from '../../support/feed.ts'
import { addKey, KEY, MERCHANT, type Rig, startTestService } from '../../support/service.ts'
import { waitUntil } from '../../support/wait-until.ts'

const LIMITS = { streams: 3, ofOneKey: 2, heartbeatMs: 100, stallMs: 5_000 }

/** Only the test publishes here. */
let rig: Rig
const open: OpenStream[] = []
beforeAll(async () => {
  rig = await borrowRig({ settings: { ROLE: 'web' }, streamLimits: LIMITS })
})
afterEach(async () => {
  for (const stream of open.splice(0)) stream.leave()
  await isOpen(0)
  expect(rig.service.ctx.feedWaiters.count()).toBe(0)
})
afterAll(() => rig.stop())

const countListeners = (signal: AbortSignal) => getEventListeners(signal, 'abort').length

const Sized = z.object({ size: z.number() })

/** Signals derived from it: it keeps a reference to each of them forever. */
function countMadeOf(signal: AbortSignal): number {
  const name = Object.getOwnPropertySymbols(signal).find(
    ({ description }) => description === 'kDependantSignals',
  )
  return Sized.parse((name && Reflect.get(signal, name)) ?? { size: 0 }).size
}

const isOpen = (n: number) =>
  waitUntil(() => rig.service.ctx.streams.open.held() === n, { what: `${n} open streams` })

async function follow(query = '', headers: Record<string, string> = {}): Promise<OpenStream> {
  const stream = await openEventStream(rig, query, headers)
  open.push(stream)
  return stream
}

let recorded = 0

/** Records and publishes so many events; returns their transactions' ids. */
async function addEvents(count = 1, more: { type?: 'sync.abandoned'; data?: object } = {}) {
  const { sql } = rig.database
  const ids = Array.from({ length: count }, () => {
    recorded += 1
    return `T-${recorded}`
  })
  const { merchantCode } = MERCHANT
  const { type = 'payment.updated', data = EVENT_DATA[type] } = more
  const events = ids.map((transactionId): NewEvent => ({ merchantCode, transactionId, type, data }))
  await runInTransaction(sql, (tx) => recordEvents(tx, events))
  await publishEvents(sql)
  return ids
}

async function findEnd(): Promise<string> {
  return (await readPage('types=refund.created')).nextCursor
}

const StreamedEvent = z.looseObject({ id: z.string(), type: z.string(), transactionId: z.string() })
const Page = z.object({ data: z.array(StreamedEvent), nextCursor: z.string() })

async function readPage(query: string): Promise<z.infer<typeof Page>> {
  return Page.parse(await (await rig.api(`/v1/events?${query}`)).json())
}

const events = ({ messages }: OpenStream): Message[] =>
  messages.filter(({ event }) => event !== undefined)

async function waitForEvents(stream: OpenStream, count: number): Promise<Message[]> {
  await waitUntil(() => events(stream).length >= count, { what: `${count} events` })
  return events(stream)
}

const namesOf = (messages: readonly Message[]) =>
  messages.map(({ data }) => StreamedEvent.parse(data).transactionId)

describe('a stream', () => {
  it('sends past events and then new ones, each as a page has it, under its cursor', async () => {
    const after = await findEnd()
    await addEvents(2)
    const stream = await follow(`?after=${after}`)
    expect(await waitForEvents(stream, 2)).toHaveLength(2)
    await addEvents(1)
    const messages = await waitForEvents(stream, 3)
    const { data: page } = await readPage(`after=${after}`)
    const expected = page.map((event) => ({ id: event.id, event: event.type, data: event }))
    expect(messages).toEqual(expected)
  })

  it('forbids buffering and caching, and sets the reconnection delay', async () => {
    const stream = await follow()
    const { status, headers } = stream.response
    expect([status, headers.get('content-encoding')]).toEqual([200, null])
    expect(Object.fromEntries(headers)).toMatchObject({
      'content-type': expect.stringMatching(/^text\/event-stream\b/),
      'cache-control': 'no-store',
      'x-accel-buffering': 'no',
    })
    await waitUntil(() => stream.messages.length > 0, { what: 'the first message' })
    expect(stream.messages[0]).toEqual({ retry: '2000' })
  })

  it('continues after `Last-Event-ID`, whatever `after` is: nothing is lost, nothing repeated', async () => {
    const after = await findEnd()
    const expected: string[] = []
    const seen: Message[] = []
    let last: string | undefined
    for (let time = 0; time < 4; time += 1) {
      expected.push(...(await addEvents(3)))
      const stream = await follow(`?after=${after}`, last ? { 'last-event-id': last } : {})
      await waitForEvents(stream, 3)
      expected.push(...(await addEvents(2)))
      seen.push(...(await waitForEvents(stream, 5)))
      stream.leave()
      await stream.ended
      last = seen.at(-1)?.id
    }
    expect(namesOf(seen)).toEqual(expected)
    for (const bad of ['x', '8999999999999999', 'latest']) {
      const refused = await rig.api('/v1/events/stream', {
        headers: { 'last-event-id': bad },
        // A stream, were it not refused, would be read until the test times out, and stay open for those that follow.
        signal: AbortSignal.timeout(10_000),
      })
      await expectInvalid(refused, 'last-event-id')
    }
  })

  it('holds the requested types', async () => {
    const stream = await follow(`?after=${await findEnd()}&types=sync.abandoned`)
    await addEvents(3)
    const [id] = await addEvents(1, { type: 'sync.abandoned' })
    expect(namesOf(await waitForEvents(stream, 1))).toEqual([id])
  })

  it('sends heartbeats while there are no events, with the cursor behind all that were skipped', async () => {
    const after = await findEnd()
    await addEvents(3)
    const start = await findEnd()
    const stream = await follow(`?after=${after}&types=sync.abandoned`)
    await waitUntil(() => stream.beats() >= 2, { what: 'two heartbeats' })
    expect(stream.messages.slice(0, 3)).toEqual([{ retry: '2000' }, { id: start }, { id: start }])
    await addEvents(3)
    const end = await findEnd()
    await waitUntil(() => stream.messages.at(-1)?.id === end, { what: 'the next cursor' })
  })

  it('is not started for a HEAD', async () => {
    expect((await rig.api('/v1/events/stream', { method: 'HEAD' })).status).toBe(200)
    expect(rig.service.ctx.streams.open.held()).toBe(0)
  })

  it('ends soon after its key is revoked', async () => {
    const key = 'a-key-that-ends-0123456789-0123456789'
    await addKey(rig.database, key, ['payments:read'])
    const stream = await follow('', withKey(key).headers)
    await waitUntil(() => stream.beats() >= 2, { what: 'two heartbeats' })
    await rig.database.sql`update actors set ended_at = now() where hash = sha256(${key}::bytea)`
    await stream.ended
    await isOpen(0)
  })
})

it('more streams than a key, or all of a process, may have are refused with 503, until one ends', async () => {
  const other = 'another-key-that-follows-0123456789-0123456789'
  await addKey(rig.database, other, ['payments:read'])
  const [first] = await Promise.all([follow(), follow()])
  await expectProblem(await rig.api('/v1/events/stream'), 503, 'unavailable')
  expect((await follow('', withKey(other).headers)).response.status).toBe(200)
  const refused = await rig.api('/v1/events/stream', withKey(other))
  expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0)
  await expectProblem(refused, 503, 'unavailable')
  const metrics = await (await fetch(`${rig.service.url}/metrics`)).text()
  expect(metrics).toContain('\nevent_streams 3\n')
  first?.leave()
  await isOpen(2)
  expect((await follow()).response.status).toBe(200)
})

it('for a client that does not read, a few pages are read ahead at most, and it is cut off', async () => {
  const after = await findEnd()
  const { merchantCode } = MERCHANT
  // Each has a receiver to decrypt when it is written.
  const data = JSON.stringify({ id: 'x'.repeat(50_000), receiver: { of: 'nobody', sealed: '' } })
  await rig.database.sql`
    insert into events (merchant_code, transaction_id, type, data, at)
    select ${merchantCode}, 'T-LARGE', 'payment.updated', ${data}::json, now()
    from generate_series(1, 1000) as n`
  const { hostname, port } = new URL(rig.service.url)
  const socket = connect(Number(port), hostname)
  const closed = new Promise((resolve) => socket.once('close', resolve))
  socket.on('error', () => {})
  socket.pause()
  const written = vi.spyOn(rig.service.ctx.encryption, 'decrypt')
  socket.write(
    `GET /v1/events/stream?after=${after} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${KEY}\r\n\r\n`,
  )
  await isOpen(1)
  await isOpen(0)
  expect(written.mock.calls.length).toBeGreaterThan(0)
  expect(written.mock.calls.length).toBeLessThan(750)
  written.mockRestore()
  socket.resume()
  await closed
})

it('reads, long polls and streams leave no listener on the signal that ends the process', async () => {
  const { stopping } = rig.service.ctx.lifecycle
  const [waiting, made] = [countListeners(stopping), countMadeOf(stopping)]
  const end = await findEnd()
  await Promise.all([0, 1].map((wait) => readPage(`after=${end}&wait=${wait}`)))
  const [transactionId = ''] = await addEvents()
  await rig.database.sql`
    insert into transactions (merchant_code, transaction_id)
    values (${MERCHANT.merchantCode}, ${transactionId})`
  const response = await rig.api(`/v1/transactions/${transactionId}?wait=1`)
  expect(response.status).toBe(200)
  const stream = await follow()
  stream.leave()
  await isOpen(0)
  expect(countListeners(stopping)).toBe(waiting)
  expect(countMadeOf(stopping)).toBe(made)
})

it('streams and waiting readers end when the service stops', async () => {
  const service = await startTestService(rig.database, rig.sandbox.url, {
    settings: { ROLE: 'web' },
  })
  const api = (path: string, init: RequestInit = {}) =>
    fetch(service.url + path, { ...init, ...withKey() })
  const after = await findEnd()
  const stream = await openEventStream({ api }, `?after=${after}`)
  const waiting = api(`/v1/events?after=${after}&wait=60`)
  await waitUntil(() => service.ctx.feedWaiters.count() === 2, { what: 'both wait' })
  const began = performance.now()
  await service.stop()
  expect(performance.now() - began).toBeLessThan(5_000)
  await stream.ended
  expect(await (await waiting).json()).toEqual({ data: [], nextCursor: after })
})
