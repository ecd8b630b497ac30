import { describe, expect, it } from 'vitest'
import { claimDeliveries } from '../../../src/webhooks/claim-deliveries.ts'
import { createDeliveryRound, fanOut } from '../../../src/webhooks/deliver-events.ts'
import { serve } from '../../support/gateway.ts'
import { keepLog } from '../../support/sync.ts'
import { waitUntil } from '../../support/wait-until.ts'
import {
  callWebhooks,
  listIds,
  listPending,
  openProbe,
  passTime,
  publish,
  readEndpointRow,
  register,
  useWebhookRig,
  work,
} from '../../support/webhooks.ts'

const kept = keepLog()
const rig = useWebhookRig(kept.log)

/** An endpoint that answers with its current status, or that of the event. */
async function receive(status = 200) {
  const one = { status, ofEvents: new Map<string, number>() }
  const { url, seen } = await serve((response, { headers }) => {
    response.writeHead(one.ofEvents.get(String(headers['webhook-id'])) ?? one.status).end()
  })
  return Object.assign(one, { url, seen })
}

const transactions = (count: number) => Array.from({ length: count }, (_, n) => `T-${n}`)

/** Moves the start of an endpoint's failure into the past. */
const ageOutage = (endpointId: string, interval: string) => rig.database.sql`
  update webhook_endpoints set failing_since = now() - ${interval}::interval where id = ${endpointId}`

describe('a failing endpoint', () => {
  it('gets one call at a time until it accepts one; then everything pending is sent at once', async () => {
    const receiver = await receive(503)
    const { id: endpointId } = await register(rig, receiver.url)
    const ids = await publish(rig, transactions(40))
    const { ctx } = rig.service
    await work(ctx)
    // Those were in flight together.
    expect(receiver.seen).toHaveLength(4)
    await work(ctx)
    expect(receiver.seen).toHaveLength(4)
    for (const calls of [5, 6, 7]) {
      await passTime(rig)
      await work(ctx)
      expect(receiver.seen).toHaveLength(calls)
    }
    await rig.database.sql`
      update webhook_deliveries set attempts = 6, due_at = now() + interval '6 hours'
      where endpoint_id = ${endpointId} and attempts > 0`
    receiver.status = 200
    await openProbe(rig)
    await work(ctx)
    expect(await listPending(rig, endpointId)).toEqual([])
    expect(new Set(listIds(receiver.seen.slice(7)))).toEqual(new Set(ids))
  })

  it('is probed by one process only, at intervals that grow with the outage, up to a minute', async () => {
    const receiver = await receive(503)
    const { id: endpointId } = await register(rig, receiver.url)
    await publish(rig, transactions(20))
    const { ctx } = rig.service
    await work(ctx)
    const before = receiver.seen.length
    for (const [age, least, most] of [
      ['1 second', 0.5, 1],
      ['20 seconds', 4, 6],
      ['1 day', 50, 60],
    ] as const) {
      await ageOutage(endpointId, age)
      await passTime(rig)
      await Promise.all([1, 2, 3].map(() => work(ctx)))
      const [row] = await rig.database.sql<{ pauseS: number }[]>`
        select extract(epoch from probe_at - now())::float8 as "pauseS" from webhook_endpoints
        where id = ${endpointId}`
      expect(row?.pauseS).toBeGreaterThan(least - 0.5)
      expect(row?.pauseS).toBeLessThanOrEqual(most)
    }
    expect(receiver.seen).toHaveLength(before + 3)
  })

  it('that refuses a single event keeps that to its backoff, however many others it accepts', async () => {
    const receiver = await receive()
    const { id: endpointId } = await register(rig, receiver.url)
    const [bad = ''] = await publish(rig, ['T-BAD'])
    receiver.ofEvents.set(bad, 500)
    const { ctx } = rig.service
    const tries = () => listIds(receiver.seen).filter((id) => id === bad).length
    for (const n of [1, 2, 3]) {
      await passTime(rig)
      await work(ctx)
      expect(tries()).toBe(n)
      const good = await publish(rig, transactions(3))
      await work(ctx)
      expect(listIds(receiver.seen)).toEqual(expect.arrayContaining(good))
      expect(tries()).toBe(n)
      expect(await readEndpointRow(rig, endpointId)).toMatchObject({ failing: false })
    }
  })

  it('that refuses a single event for five days is logged, and stays enabled', async () => {
    const receiver = await receive()
    const { id: endpointId } = await register(rig, receiver.url)
    const [bad = ''] = await publish(rig, ['T-BAD'])
    receiver.ofEvents.set(bad, 500)
    await work(rig.service.ctx)
    await rig.database.sql`
      update webhook_deliveries set failing_since = now() - interval '5 days 1 minute'
      where endpoint_id = ${endpointId}`
    await publish(rig, ['T-GOOD'])
    await work(rig.service.ctx)
    await passTime(rig)
    await work(rig.service.ctx)
    expect(kept.saying('refused this event for five days').at(-1)).toMatchObject({ level: 40 })
    expect(await readEndpointRow(rig, endpointId)).toMatchObject({ reason: null })
  })

  it('that never answers delays no other, and has a few calls in flight at most', async () => {
    const silent = await serve(() => {})
    const { id: hanging } = await register(rig, silent.url)
    const receiver = await receive()
    await register(rig, receiver.url)
    const givingUp = new AbortController()
    const round = createDeliveryRound({ ...rig.service.ctx, givingUp: givingUp.signal })
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
    expect(await listPending(rig, hanging)).toHaveLength(60)
  })
})

it('failing endpoints get a limited share of the calls in flight, however many they are', async () => {
  const receiver = await receive()
  const failing = []
  for (let n = 0; n < 5; n += 1) failing.push((await register(rig, receiver.url)).id)
  await rig.database.sql`update webhook_endpoints set failing_since = now()`
  const { id: well } = await register(rig, receiver.url)
  await publish(rig, transactions(3))
  const { ctx } = rig.service
  await fanOut(ctx)
  const claims = await claimDeliveries(ctx, 32, 2)
  expect(claims.filter(({ endpointId }) => endpointId === well)).toHaveLength(3)
  expect(claims.filter(({ probes }) => probes).map((one) => one.endpointId)).toHaveLength(2)
  expect(claims).toHaveLength(5)
})

it('calls are shared round-robin: neither of two endpoints gets all free ones', async () => {
  const receiver = await receive()
  const ids = [await register(rig, receiver.url), await register(rig, receiver.url)]
  await publish(rig, transactions(5))
  await fanOut(rig.service.ctx)
  const claims = await claimDeliveries(rig.service.ctx, 4, 4)
  const shares = ids.map(({ id }) => claims.filter(({ endpointId }) => endpointId === id).length)
  expect(shares).toEqual([2, 2])
})

it('a slow endpoint that has calls in flight waits for one that has none, however long its events have been due', async () => {
  const receiver = await receive()
  const { ctx } = rig.service
  const { id: slow } = await register(rig, receiver.url, ['payment.updated'])
  await publish(rig, transactions(5))
  await fanOut(ctx)
  expect(await claimDeliveries(ctx, 1, 1)).toHaveLength(1)
  await rig.database.sql`
    update webhook_deliveries set due_at = now() - interval '1 hour' where lease_id is null`
  const { id: other } = await register(rig, receiver.url, ['refund.updated'])
  await publish(rig, ['T-OTHER'], { type: 'refund.updated' })
  await fanOut(ctx)
  const next = [await claimDeliveries(ctx, 1, 1), await claimDeliveries(ctx, 1, 1)].flat()
  expect(next.map(({ endpointId }) => endpointId)).toEqual([other, slow])
})

describe('an endpoint is disabled', () => {
  it('by a 410 at once: nothing more is sent or fanned out until it is enabled and continues in order', async () => {
    const receiver = await receive(410)
    const { id: endpointId } = await register(rig, receiver.url)
    const [first = '', second = ''] = await publish(rig, ['T-G', 'T-G'])
    await work(rig.service.ctx)
    expect(listIds(receiver.seen)).toEqual([first])
    expect(await readEndpointRow(rig, endpointId)).toMatchObject({ reason: 'gone' })
    const notice = kept.saying('webhook endpoint disabled').at(-1)
    expect(notice).toMatchObject({ endpointId, reason: 'gone' })
    expect(notice?.msg).toContain(`POST /v1/webhook-endpoints/${endpointId}/enable`)
    const [third = ''] = await publish(rig, ['T-G'])
    await passTime(rig)
    await work(rig.service.ctx)
    expect(receiver.seen).toHaveLength(1)
    const disabled = await (await callWebhooks(rig, 'GET')).json()
    expect(disabled).toMatchObject({
      data: [{ id: endpointId, disabledReason: 'gone', lastError: 'answered 410', pending: 2 }],
    })
    receiver.status = 200
    const enabled = await callWebhooks(rig, 'POST', `/${endpointId}/enable`)
    expect(await enabled.json()).toMatchObject({ disabledAt: null, disabledReason: null })
    await work(rig.service.ctx)
    expect(listIds(receiver.seen)).toEqual([first, first, second, third])
  })

  it('by a failure five days after the first since its last success, and not before', async () => {
    const receiver = await receive(500)
    const { id: endpointId } = await register(rig, receiver.url)
    const [id] = await publish(rig, ['T-FIVE'])
    await work(rig.service.ctx)
    await ageOutage(endpointId, '4 days 23:59')
    await passTime(rig)
    await work(rig.service.ctx)
    expect(await readEndpointRow(rig, endpointId)).toMatchObject({ reason: null })
    await ageOutage(endpointId, '5 days')
    await passTime(rig)
    await work(rig.service.ctx)
    expect(await readEndpointRow(rig, endpointId)).toMatchObject({ reason: 'failing' })
    const [notice] = kept.saying('webhook endpoint disabled').slice(-1)
    expect(notice).toMatchObject({ endpointId, reason: 'failing' })
    const metrics = await (await fetch(`${rig.service.url}/metrics`)).text()
    expect(metrics).toContain('webhook_endpoints_disabled{reason="failing"} 1')
    expect(metrics).toMatch(/webhook_deliveries_total\{outcome="failed"\} \d+/)
    // Once enabled, it has five days again.
    await callWebhooks(rig, 'POST', `/${endpointId}/enable`)
    await work(rig.service.ctx)
    expect(await readEndpointRow(rig, endpointId)).toMatchObject({ failing: true, reason: null })
    expect(listIds(receiver.seen)).toEqual(Array(4).fill(id))
  })
})

describe('a replay', () => {
  it('repeats everything after an event, in order, and duplicates no pending delivery', async () => {
    const receiver = await receive()
    const { id: endpointId } = await register(rig, receiver.url)
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
    const answers: (() => void)[] = []
    const receiver = await serve((response) => answers.push(() => response.end()))
    const { id: endpointId } = await register(rig, receiver.url)
    const [first = '', second = ''] = await publish(rig, ['T-R', 'T-R'])
    const round = createDeliveryRound(rig.service.ctx)
    /** Begins a round that makes one call, which ends with `answer`. */
    const begin = async (count: number) => {
      const { finished } = await round()
      await waitUntil(() => answers.length === count, { what: `call ${count}` })
      return {
        async answer() {
          answers.at(-1)?.()
          await finished
        },
      }
    }
    await (await begin(1)).answer()
    const inFlight = await begin(2)
    await callWebhooks(rig, 'POST', `/${endpointId}/replay`, { after: String(Number(first) - 1) })
    await inFlight.answer()
    await (await begin(3)).answer()
    await (await begin(4)).answer()
    expect(listIds(receiver.seen)).toEqual([first, second, first, second])
    expect(await listPending(rig, endpointId)).toEqual([])
  })
})
