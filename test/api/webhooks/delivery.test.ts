import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { listPasses, startBackground } from '../../../src/background.ts'
import { recordEvents } from '../../../src/events/record-events.ts'
import { publishEvents } from '../../../src/feed/publish-events.ts'
import { runInTransaction } from '../../../src/platform/postgres/transaction.ts'
import { createDeliveryRound } from '../../../src/webhooks/deliver.ts'
import { EVENT_DATA } from '../../support/event-data.ts'
import { type Seen, serve } from '../../support/gateway.ts'
import { changeLifecycle, MERCHANT } from '../../support/service.ts'
import { keepLog } from '../../support/sync.ts'
import { waitUntil } from '../../support/wait-until.ts'
import {
  callWebhooks,
  deliver,
  deliverLater,
  listAttempts,
  listIds,
  loseLease,
  passTime,
  publish,
  readEndpoint,
  readWait,
  register,
  serveHeld,
  useWebhookRig,
  verify,
  work,
} from '../../support/webhooks.ts'

const kept = keepLog()
const rig = useWebhookRig(kept.log)

/** An endpoint that answers as the test decides, by default 200. */
const receive = (answer: (id: string, times: number) => number = () => 200) => {
  const times = new Map<string, number>()
  return serve((response, { headers }) => {
    const id = String(headers['webhook-id'])
    times.set(id, (times.get(id) ?? 0) + 1)
    response.writeHead(answer(id, times.get(id) ?? 1)).end()
  })
}

/** The pool, which calls `onClaim` at each statement that claims endpoints. */
const watchClaims = (onClaim: () => void) =>
  new Proxy(rig.service.ctx.db.sql, {
    apply(sql, self, values) {
      if (String(values[0]).includes('of e skip locked')) onClaim()
      return Reflect.apply(sql, self, values)
    },
  })

describe('an endpoint', () => {
  it("gets the event, which the library's own verifier accepts, and no other header of ours", async () => {
    const receiver = await receive()
    const { secret } = await register(rig, `${receiver.url}/hook?for=us`)
    const [id = ''] = await deliver(rig, ['T-ONE'])
    const [got, second] = receiver.seen
    if (!got) throw new Error('nothing came')
    expect(second).toBeUndefined()
    expect(verify(got, secret)).toMatchObject({
      id,
      type: 'payment.updated',
      transactionId: 'T-ONE',
      data: { id: 'P-T-ONE', amount: '10000.50' },
    })
    expect(got.path).toBe('/hook?for=us')
    expect(got.headers).toMatchObject({ 'content-type': 'application/json', 'webhook-id': id })
    const ours = 'content-type,user-agent,webhook-id,webhook-signature,webhook-timestamp'
    const wire = ['connection', 'content-length', 'host']
    const sent = Object.keys(got.headers).filter((name) => !wire.includes(name))
    expect(sent.sort().join()).toBe(ours)
    const forged: Seen = { ...got, body: got.body.replace('10000.50', '20000.50') }
    expect(() => verify(forged, secret)).toThrow()
  })

  it('gets database time, however wrong the clock of the sending process is', async () => {
    const receiver = await receive()
    const { id: endpointId } = await register(rig, receiver.url)
    await publish(rig, ['T-TIME'])
    const now = Date.now()
    vi.useFakeTimers({ toFake: ['Date'], now: now + 3_600_000 })
    onTestFinished(() => void vi.useRealTimers())
    await work(rig.service.ctx)
    expect((await callWebhooks(rig, 'POST', `/${endpointId}/test`)).status).toBe(200)
    const times = receiver.seen.map(({ headers }) => Number(headers['webhook-timestamp']))
    expect(times).toHaveLength(2)
    // The tolerance of a verifier.
    for (const time of times) expect(Math.abs(time - now / 1000)).toBeLessThan(300)
  })

  it('that fails for a while gets the same event, under the same id, by the retry schedule', async () => {
    const receiver = await receive((_, times) => (times < 9 ? 500 : 204))
    const { id: endpointId, secret } = await register(rig, receiver.url)
    const [id = ''] = await publish(rig, ['T-AGAIN'])
    for (const seconds of [5, 30, 120, 600, 3_600, 10_800, 21_600, 21_600]) {
      await work(rig.service.ctx)
      const [last] = await listAttempts(rig, endpointId)
      if (!last) throw new Error('no attempt')
      expect(last).toMatchObject({ eventId: id, error: 'answered 500' })
      expect(readWait(last)).toBeGreaterThan(seconds - 1)
      expect(readWait(last)).toBeLessThanOrEqual(seconds * 1.1 + 1)
      await passTime(rig)
    }
    await work(rig.service.ctx)
    expect(listIds(receiver.seen)).toEqual(Array(9).fill(id))
    for (const one of receiver.seen) expect(verify(one, secret).id).toBe(id)
    const healed = { pending: 0, failingSince: null, disabledReason: null }
    expect(await readEndpoint(rig, endpointId)).toMatchObject(healed)
  })

  it('gets only the types it subscribed to, and only events after its registration', async () => {
    const receiver = await receive()
    await publish(rig, ['T-BEFORE'], { type: 'refund.updated' })
    const { id: endpointId } = await register(rig, receiver.url, ['refund.updated'])
    await publish(rig, ['T-OTHER'])
    const [wanted = ''] = await publish(rig, ['T-WANTED'], { type: 'refund.updated' })
    await deliver(rig, ['T-OTHER'])
    expect(listIds(receiver.seen)).toEqual([wanted])
    expect(await readEndpoint(rig, endpointId)).toMatchObject({ pending: 0 })
  })
})

it('publishing wakes the delivery; polling is the fallback', async () => {
  const receiver = await receive()
  const stopping = new AbortController()
  const ctx = changeLifecycle(rig.service.ctx, { stopping: stopping.signal })
  const rare = { idleMs: () => Promise.resolve(3_600_000) }
  const loops = await startBackground(
    ctx,
    listPasses(ctx).map((pass) => ({ ...pass, ...rare })),
  )
  try {
    // What earlier tests left to publish is of other types.
    await register(rig, receiver.url, ['payment.updated'])
    for (const n of [1, 2, 3]) {
      await publish(rig, ['T-WAKE'])
      await waitUntil(() => receiver.seen.length === n, { what: `webhook ${n}` })
    }
  } finally {
    stopping.abort()
    await Promise.all(loops.map(({ stopped }) => stopped))
  }
})

describe('the order of one transaction', () => {
  it('holds while its first event is refused, and other transactions continue', async () => {
    let refused = ''
    const receiver = await receive((id) => (id === refused ? 500 : 200))
    await register(rig, receiver.url)
    const ids = await publish(rig, ['T-A', 'T-A', 'T-B', 'T-A', 'T-B'])
    const [a1 = '', a2 = '', b1 = '', a3 = '', b2 = ''] = ids
    refused = a1
    await work(rig.service.ctx)
    await deliverLater(rig)
    const got = listIds(receiver.seen)
    expect(got.filter((id) => id !== a1)).toEqual([b1, b2])
    expect(got.filter((id) => id === a1)).toHaveLength(2)
    refused = ''
    await deliverLater(rig)
    expect(listIds(receiver.seen).slice(got.length)).toEqual([a1, a2, a3])
  })
})

it('an event that cannot be written fails alone: the endpoint gets the events of other transactions, does not fail, and names it', async () => {
  const receiver = await receive()
  const { id: endpointId } = await register(rig, receiver.url)
  const [poison = ''] = await publish(rig, ['T-POISON'])
  // As after a loss in the database: no time can be read.
  await rig.database.sql`update events set at = 'infinity' where id = ${poison}`
  await work(rig.service.ctx)
  const lastError = 'the event could not be written'
  const stands = { lastError, pending: 1, failingSince: null }
  expect(await readEndpoint(rig, endpointId)).toMatchObject(stands)
  const [next = ''] = await deliver(rig, ['T-AFTER'])
  expect(listIds(receiver.seen)).toEqual([next])
  expect(kept.saying('an event cannot be written')).toMatchObject([{ eventId: Number(poison) }])
})

it('an endpoint whose next event was deleted goes on with the oldest that is kept, which is logged and counted once', async () => {
  const { sql } = rig.database
  const receiver = await receive()
  const { id: endpointId } = await register(rig, receiver.url)
  const [first = '', second = ''] = await publish(rig, ['T-OLD', 'T-OLD'])
  await sql`delete from events where id = ${first}::bigint`
  await sql`insert into event_removals (removed_up_to) values (${first})
    on conflict ("only") do update set removed_up_to = excluded.removed_up_to`
  onTestFinished(async () => {
    await sql`update event_removals set removed_up_to = 0`
  })
  await work(rig.service.ctx)
  const [third = ''] = await deliver(rig, ['T-OLD'])
  expect(listIds(receiver.seen)).toEqual([second, third])
  expect(kept.saying('events were deleted')).toMatchObject([{ endpointId }])
  const metrics = await (await fetch(`${rig.service.url}/metrics`)).text()
  expect(metrics).toMatch(/webhook_deliveries_total\{outcome="removed"\} [1-9]/)
})

it('an endpoint gets a refund whose metadata has the names of our own members', async () => {
  const receiver = await receive()
  await register(rig, receiver.url, ['refund.created'])
  const data = { ...EVENT_DATA['refund.created'], metadata: { bag: 'no', sealed: 'yes' } }
  const { merchantCode } = MERCHANT
  await runInTransaction(rig.database.sql, (tx) =>
    recordEvents(tx, [{ merchantCode, transactionId: 'T-META', type: 'refund.created', data }]),
  )
  await publishEvents(rig.database.sql)
  await work(rig.service.ctx)
  expect(JSON.parse(receiver.seen[0]?.body ?? '{}')).toMatchObject({ data })
})

describe('a claim', () => {
  it('that lost its lease writes nothing, whatever came back, and the event is sent again under its id', async () => {
    const receiver = await serveHeld()
    const { id: endpointId } = await register(rig, receiver.url)
    const [id = ''] = await publish(rig, ['T-LOST'])
    const { ctx } = rig.service
    for (const [calls, status] of [200, 500, 410].entries()) {
      const round = createDeliveryRound(ctx)
      const { finished } = await round()
      await waitUntil(() => receiver.seen.length === calls + 1, { what: 'the call' })
      await work(ctx)
      expect(receiver.seen).toHaveLength(calls + 1)
      await loseLease(rig, endpointId)
      receiver.answer(status)
      await finished
      expect(await listAttempts(rig, endpointId)).toEqual([])
      const untouched = { pending: 1, lastError: null, failingSince: null, disabledReason: null }
      expect(await readEndpoint(rig, endpointId)).toMatchObject(untouched)
      await passTime(rig)
    }
    expect(listIds(receiver.seen)).toEqual([id, id, id])
  })

  it('that lost its lease leaves the retry that it sent, although that was accepted', async () => {
    const receiver = await serveHeld()
    const { id: endpointId } = await register(rig, receiver.url)
    const [id = ''] = await publish(rig, ['T-RETRY'])
    const send = async (status: number, meanwhile = async () => {}) => {
      const calls = receiver.seen.length
      const { finished } = await createDeliveryRound(rig.service.ctx)()
      await waitUntil(() => receiver.seen.length === calls + 1, { what: 'the call' })
      await meanwhile()
      receiver.answer(status)
      await finished
      await passTime(rig)
    }
    await send(500)
    await send(200, () => loseLease(rig, endpointId))
    expect(await readEndpoint(rig, endpointId)).toMatchObject({ pending: 1 })
    await send(200)
    expect(await readEndpoint(rig, endpointId)).toMatchObject({ pending: 0 })
    expect(listIds(receiver.seen)).toEqual([id, id, id])
  })

  it('that stalled until its lease had nearly expired is not sent', async () => {
    const receiver = await receive()
    const { id: endpointId } = await register(rig, receiver.url)
    await publish(rig, ['T-HELD'])
    const { ctx } = rig.service
    const { now } = performance
    const decrypt: typeof ctx.encryption.decrypt = (...sealed) => {
      performance.now = () => now.call(performance) + 50_000
      return ctx.encryption.decrypt(...sealed)
    }
    try {
      const round = createDeliveryRound({ ...ctx, encryption: { ...ctx.encryption, decrypt } })
      await (await round()).finished
    } finally {
      performance.now = now
    }
    expect(receiver.seen).toEqual([])
    expect(await readEndpoint(rig, endpointId)).toMatchObject({ pending: 1, failingSince: null })
    await work(ctx)
    expect(receiver.seen).toHaveLength(1)
  })

  it('that took until its lease had nearly expired is not sent', async () => {
    const receiver = await receive()
    await register(rig, receiver.url)
    await publish(rig, ['T-LATE'])
    const { ctx } = rig.service
    const { now } = performance
    let laterMs = 0
    const sql = watchClaims(() => {
      laterMs += 50_000
    })
    performance.now = () => now.call(performance) + laterMs
    try {
      await (await createDeliveryRound({ ...ctx, db: { ...ctx.db, sql } })()).finished
    } finally {
      performance.now = now
    }
    expect(receiver.seen).toEqual([])
    await work(ctx)
    expect(receiver.seen).toHaveLength(1)
  })

  it('of failing endpoints is given back when that of the others fails', async () => {
    const receiver = await receive((_, times) => (times === 1 ? 500 : 204))
    await register(rig, receiver.url)
    await publish(rig, ['T-BACK'])
    const { ctx } = rig.service
    await work(ctx)
    await passTime(rig)
    let claims = 0
    const sql = watchClaims(() => {
      claims += 1
      if (claims === 2) throw new Error('no answer')
    })
    await expect(createDeliveryRound({ ...ctx, db: { ...ctx.db, sql } })()).rejects.toThrow(
      'no answer',
    )
    expect(receiver.seen).toHaveLength(1)
    await work(ctx)
    expect(receiver.seen).toHaveLength(2)
  })

  it('in flight when the process has to end is released, and counts as no failure', async () => {
    const receiver = await serveHeld()
    const { id: endpointId } = await register(rig, receiver.url)
    const [id = ''] = await publish(rig, ['T-STOP'])
    const givingUp = new AbortController()
    const round = createDeliveryRound(
      changeLifecycle(rig.service.ctx, { givingUp: givingUp.signal }),
    )
    const { finished } = await round()
    await waitUntil(() => receiver.seen.length === 1, { what: 'the call' })
    givingUp.abort()
    await finished
    expect(await listAttempts(rig, endpointId)).toEqual([])
    expect(await readEndpoint(rig, endpointId)).toMatchObject({ pending: 1, failingSince: null })
    const next = await createDeliveryRound(rig.service.ctx)()
    await waitUntil(() => receiver.seen.length === 2, { what: 'the call of another process' })
    for (const _ of receiver.seen) receiver.answer()
    await next.finished
    expect(listIds(receiver.seen)).toEqual([id, id])
  })
})

it('what waits for a deleted endpoint is deleted with it', async () => {
  const receiver = await receive(() => 500)
  const { id: endpointId } = await register(rig, receiver.url)
  await deliver(rig, ['T-GONE', 'T-GONE'])
  const sent = receiver.seen.length
  expect((await callWebhooks(rig, 'DELETE', `/${endpointId}`)).status).toBe(204)
  await deliverLater(rig)
  expect(receiver.seen).toHaveLength(sent)
})
