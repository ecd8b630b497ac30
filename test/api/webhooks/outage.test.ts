import { describe, expect, it, onTestFinished } from 'vitest'
import { createDeliveryRound } from '../../../src/webhooks/deliver.ts'
import { expectProblem } from '../../support/api.ts'
import { serve } from '../../support/gateway.ts'
import { changeLifecycle } from '../../support/service.ts'
import { keepLog } from '../../support/sync.ts'
import { waitUntil } from '../../support/wait-until.ts'
import {
  ageOutage,
  ageRetries,
  callWebhooks,
  deliver,
  deliverLater,
  growBackoff,
  listAttempts,
  listIds,
  openEndpoint,
  openProbe,
  passTime,
  publish,
  readEndpoint,
  readPause,
  receive,
  register,
  serveHeld,
  useWebhookRig,
  work,
} from '../../support/webhooks.ts'

const kept = keepLog()
const rig = useWebhookRig(kept.log)

/** Delivers once: `work` would go on if the endpoint's pause, of a second or less at first, ended meanwhile. */
async function workOnce(): Promise<void> {
  const { finished } = await createDeliveryRound(rig.service.ctx)()
  await finished
}

/** Makes the first pause of a failing endpoint so long that it does not end by itself. */
async function extendPause(endpointId: string): Promise<void> {
  const { count } = await rig.database.sql`
    update webhook_endpoints set due_at = due_at + interval '1 hour'
    where id = ${endpointId} and due_at > failing_since`
  expect(count).toBe(1)
}

const transactions = (count: number) => Array.from({ length: count }, (_, n) => `T-${n}`)

describe('a failing endpoint', () => {
  it('gets one call at a time until it accepts one; then everything pending is sent at once', async () => {
    const { receiver, id: endpointId } = await openEndpoint(rig, 503)
    const ids = await publish(rig, transactions(40))
    await workOnce()
    // Those were in flight together.
    expect(receiver.seen).toHaveLength(4)
    await extendPause(endpointId)
    await workOnce()
    expect(receiver.seen).toHaveLength(4)
    for (const calls of [5, 6, 7]) {
      await passTime(rig)
      await workOnce()
      expect(receiver.seen).toHaveLength(calls)
    }
    await growBackoff(rig, endpointId)
    receiver.status = 200
    await openProbe(rig)
    await work(rig.service.ctx)
    expect(await readEndpoint(rig, endpointId)).toMatchObject({ pending: 0, failingSince: null })
    expect(new Set(listIds(receiver.seen.slice(7)))).toEqual(new Set(ids))
  })

  it('is probed by one process only, at intervals that grow with the outage, up to a minute', async () => {
    const { receiver, id: endpointId } = await openEndpoint(rig, 503)
    await publish(rig, transactions(20))
    await workOnce()
    const before = receiver.seen.length
    for (const [age, pauseS] of [
      ['1 second', 1],
      ['20 seconds', 5],
      ['1 day', 60],
    ] as const) {
      const began = performance.now()
      await ageOutage(rig, endpointId, age)
      await passTime(rig)
      await Promise.all([1, 2, 3].map(() => workOnce()))
      const leftS = await readPause(rig, endpointId)
      const tookS = (performance.now() - began) / 1000
      // It began meanwhile, when the outage had grown older by no more than that.
      expect(leftS + tookS).toBeGreaterThan(pauseS)
      expect(leftS).toBeLessThanOrEqual(Math.min(60, pauseS + tookS / 4))
    }
    expect(receiver.seen).toHaveLength(before + 3)
  })

  it('that refuses a single event keeps that to its backoff, however many others it accepts', async () => {
    const { receiver, id: endpointId } = await openEndpoint(rig)
    const [bad = ''] = await publish(rig, ['T-BAD'])
    receiver.ofEvents.set(bad, 500)
    const tries = () => listIds(receiver.seen).filter((id) => id === bad).length
    for (const n of [1, 2, 3]) {
      await deliverLater(rig)
      expect(tries()).toBe(n)
      const good = await deliver(rig, transactions(3))
      expect(listIds(receiver.seen)).toEqual(expect.arrayContaining(good))
      expect(tries()).toBe(n)
      expect(await readEndpoint(rig, endpointId)).toMatchObject({ failingSince: null })
    }
  })

  it('that refuses a single event for five days is logged, and stays enabled', async () => {
    const { receiver, id: endpointId } = await openEndpoint(rig)
    const [bad = ''] = await publish(rig, ['T-BAD'])
    receiver.ofEvents.set(bad, 500)
    await work(rig.service.ctx)
    await ageRetries(rig, endpointId, '5 days 1 minute')
    await deliver(rig, ['T-GOOD'])
    await deliverLater(rig)
    expect(kept.saying('refused this event for five days').at(-1)).toMatchObject({ level: 40 })
    expect(await readEndpoint(rig, endpointId)).toMatchObject({ disabledReason: null })
  })

  it('that never answers delays no other, and has a few calls in flight at most', async () => {
    const silent = await serve(() => {})
    const { id: hanging } = await register(rig, silent.url)
    const receiver = await receive()
    await register(rig, receiver.url)
    const givingUp = new AbortController()
    const round = createDeliveryRound(
      changeLifecycle(rig.service.ctx, { givingUp: givingUp.signal }),
    )
    const ids = await publish(rig, transactions(60))
    const rounds: Promise<void>[] = []
    const begin = async () => {
      const { finished } = await round()
      rounds.push(finished)
      return receiver.seen.length === ids.length
    }
    await waitUntil(begin, { what: 'the other endpoint to get everything' })
    expect(silent.seen).toHaveLength(4)
    givingUp.abort()
    await Promise.all(rounds)
    expect(await readEndpoint(rig, hanging)).toMatchObject({ pending: 60 })
  })
})

/** Begins a round that ends when the test ends, as its calls hang. */
async function beginHanging(): Promise<void> {
  const givingUp = new AbortController()
  const { finished } = await createDeliveryRound(
    changeLifecycle(rig.service.ctx, { givingUp: givingUp.signal }),
  )()
  onTestFinished(async () => {
    givingUp.abort()
    await finished
  })
}

it('failing endpoints get a limited share of the calls in flight, however many they are', async () => {
  const [silent, receiver] = [await serve(() => {}), await receive()]
  for (let n = 0; n < 18; n += 1) await register(rig, silent.url)
  await rig.database.sql`update webhook_endpoints set failing_since = now()`
  await register(rig, receiver.url)
  const ids = await publish(rig, transactions(1))
  await beginHanging()
  const claimed = await rig.database.sql`
    select from webhook_endpoints where lease_id is not null and failing_since is not null`
  expect(claimed).toHaveLength(16)
  await waitUntil(() => receiver.seen.length === 1, { what: 'the endpoint that works' })
  await waitUntil(() => silent.seen.length === 16, { what: 'the share of those that fail' })
  expect(listIds(receiver.seen)).toEqual(ids)
})

it('calls are shared: each of many endpoints gets one at once, although all of them hang', async () => {
  const silent = await Promise.all(Array.from({ length: 12 }, () => serve(() => {})))
  for (const { url } of silent) await register(rig, url)
  await publish(rig, transactions(5))
  await beginHanging()
  const calls = () => silent.reduce((all, { seen }) => all + seen.length, 0)
  await waitUntil(() => calls() === 32, { what: 'all calls to be in flight' })
  for (const { seen } of silent) {
    expect(seen.length).toBeGreaterThanOrEqual(1)
    expect(seen.length).toBeLessThanOrEqual(4)
  }
})

it('endpoints that answer slowly and have much to get take turns with the others', async () => {
  const slow = await serve((response) => void setTimeout(() => response.end(), 50))
  const receiver = await receive()
  for (let n = 0; n < 8; n += 1) await register(rig, slow.url, ['payment.updated'])
  await register(rig, receiver.url, ['payment.created'])
  await publish(rig, transactions(80))
  const stopping = new AbortController()
  const { signal } = stopping
  const round = createDeliveryRound(changeLifecycle(rig.service.ctx, { givingUp: signal }))
  const rounds = [await round()]
  const begin = async () => {
    rounds.push(await round())
    return receiver.seen.length > 0
  }
  await waitUntil(() => slow.seen.length > 32, { what: 'all calls to be in flight' })
  await publish(rig, ['T-QUICK'], { type: 'payment.created' })
  await waitUntil(begin, { what: 'the other endpoint' })
  expect(slow.seen.length).toBeLessThan(8 * 40)
  stopping.abort()
  await Promise.all(rounds.map(({ finished }) => finished))
})

describe('an endpoint is disabled', () => {
  it('by a 410 at once: nothing more is sent or fanned out until it is enabled and continues in order', async () => {
    const { receiver, id: endpointId } = await openEndpoint(rig, 410)
    const [first = '', second = ''] = await deliver(rig, ['T-G', 'T-G'])
    expect(listIds(receiver.seen)).toEqual([first])
    expect(await readEndpoint(rig, endpointId)).toMatchObject({ disabledReason: 'gone' })
    const notice = kept.saying('webhook endpoint disabled').at(-1)
    expect(notice).toMatchObject({ endpointId, reason: 'gone' })
    expect(notice?.msg).toContain(`POST /v1/webhook-endpoints/${endpointId}/enable`)
    const [third = ''] = await publish(rig, ['T-G'])
    await deliverLater(rig)
    expect(receiver.seen).toHaveLength(1)
    const disabled = await (await callWebhooks(rig, 'GET')).json()
    expect(disabled).toMatchObject({
      data: [{ id: endpointId, disabledReason: 'gone', lastError: 'answered 410', pending: 3 }],
    })
    receiver.status = 200
    const enabled = await callWebhooks(rig, 'POST', `/${endpointId}/enable`)
    expect(await enabled.json()).toMatchObject({ disabledAt: null, disabledReason: null })
    await work(rig.service.ctx)
    expect(listIds(receiver.seen)).toEqual([first, first, second, third])
  })

  it('by a failure five days after the first since its last success, and not before', async () => {
    const { receiver, id: endpointId } = await openEndpoint(rig, 500)
    const [id] = await deliver(rig, ['T-FIVE'])
    await ageOutage(rig, endpointId, '4 days 23:59')
    await deliverLater(rig)
    expect(await readEndpoint(rig, endpointId)).toMatchObject({ disabledReason: null })
    await ageOutage(rig, endpointId, '5 days')
    await deliverLater(rig)
    expect(await readEndpoint(rig, endpointId)).toMatchObject({ disabledReason: 'failing' })
    const [notice] = kept.saying('webhook endpoint disabled').slice(-1)
    expect(notice).toMatchObject({ endpointId, reason: 'failing' })
    const metrics = await (await fetch(`${rig.service.url}/metrics`)).text()
    expect(metrics).toContain('webhook_endpoints_disabled{reason="failing"} 1')
    expect(metrics).toMatch(/webhook_deliveries_total\{outcome="failed"\} \d+/)
    expect(metrics).toMatch(/^webhook_call_seconds_count [1-9]/m)
    // Once enabled, it has five days again.
    await callWebhooks(rig, 'POST', `/${endpointId}/enable`)
    await work(rig.service.ctx)
    const again = { failingSince: expect.any(String), disabledReason: null }
    expect(await readEndpoint(rig, endpointId)).toMatchObject(again)
    expect(listIds(receiver.seen)).toEqual(Array(4).fill(id))
  })
})

describe('a replay', () => {
  it('repeats everything after an event, in order, and duplicates no pending delivery', async () => {
    const { receiver, id: endpointId } = await openEndpoint(rig)
    const ids = await publish(rig, ['T-R', 'T-R', 'T-R'])
    const [first = '', second = '', third = ''] = ids
    receiver.ofEvents.set(third, 500)
    await work(rig.service.ctx)
    expect(listIds(receiver.seen)).toEqual(ids)
    receiver.ofEvents.clear()
    const replay = await callWebhooks(rig, 'POST', `/${endpointId}/replay`, { after: first })
    expect(replay.status).toBe(202)
    await work(rig.service.ctx)
    expect(listIds(receiver.seen)).toEqual([...ids, second, third])
  })

  it('leaves no newer delivery in front of what it repeats: those in flight are sent again in order', async () => {
    const receiver = await serveHeld()
    const { id: endpointId } = await register(rig, receiver.url)
    const [first = '', second = ''] = await publish(rig, ['T-R', 'T-R'])
    const round = createDeliveryRound(rig.service.ctx)
    const called = (count: number) =>
      waitUntil(() => receiver.seen.length === count, { what: `call ${count}` })
    const inFlight = await round()
    await called(1)
    receiver.answer()
    await called(2)
    await callWebhooks(rig, 'POST', `/${endpointId}/replay`, { after: String(Number(first) - 1) })
    receiver.answer()
    await inFlight.finished
    const again = await round()
    for (const count of [3, 4]) {
      await called(count)
      receiver.answer()
    }
    await again.finished
    expect(listIds(receiver.seen)).toEqual([first, second, first, second])
    expect(await readEndpoint(rig, endpointId)).toMatchObject({ pending: 0 })
    expect(await listAttempts(rig, endpointId)).toHaveLength(3)
  })

  it('from 0 begins with the oldest event that is kept, and an older event is refused with that advice', async () => {
    const { sql } = rig.database
    const { receiver, id: endpointId } = await openEndpoint(rig)
    const ids = await publish(rig, ['T-K', 'T-K', 'T-K'])
    const [first = '', second = '', third = ''] = ids
    await work(rig.service.ctx)
    await sql`delete from events where id <= ${second}::bigint`
    await sql`insert into event_removals (removed_up_to) values (${second})
      on conflict ("only") do update set removed_up_to = excluded.removed_up_to`
    onTestFinished(async () => {
      await sql`update event_removals set removed_up_to = 0`
    })
    const replay = (after: string) => callWebhooks(rig, 'POST', `/${endpointId}/replay`, { after })
    expect((await replay('0')).status).toBe(202)
    await work(rig.service.ctx)
    expect(listIds(receiver.seen)).toEqual([...ids, third])
    expect(kept.saying('events were deleted')).toEqual([])
    const refused = await expectProblem(await replay(first), 410, 'cursor_expired')
    expect(refused.detail).toContain('send "0"')
  })
})
