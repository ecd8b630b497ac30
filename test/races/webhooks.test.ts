import { randomUUID } from 'node:crypto'
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { createDeliveryRound } from '../../src/webhooks/deliver.ts'
import { serve } from '../support/gateway.ts'
import { changeLifecycle } from '../support/service.ts'
import { keepLog } from '../support/sync.ts'
import {
  callWebhooks,
  loseLease,
  passTime,
  publish,
  readEndpoint,
  register,
  useWebhookRig,
} from '../support/webhooks.ts'

const rig = useWebhookRig(keepLog().log)

/**
 * What becomes of a call: the event is accepted, is refused, is accepted but the answer does not arrive, or is accepted while
 * the lease passes to another process. Once these are used up, every call is accepted.
 */
const FATES = ['accept', 'refuse', 'lose', 'steal'] as const
type Fate = (typeof FATES)[number]

const plays = fc.record({
  /** The transactions of the events, in the order of the feed; some are published later. */
  events: fc.array(fc.nat({ max: 4 }), { minLength: 1, maxLength: 40 }),
  first: fc.nat({ max: 40 }),
  fates: fc.array(fc.constantFrom(...FATES), { maxLength: 30 }),
})

/** An endpoint that answers each call by the next fate, and keeps what it took. */
async function serveFates(fates: Fate[], lose: () => Promise<void>) {
  const taken: string[] = []
  const arrived: { id: string; before: ReadonlySet<string> }[] = []
  const { url } = await serve(async (response, { headers }) => {
    const id = String(headers['webhook-id'])
    const fate = fates.shift() ?? 'accept'
    arrived.push({ id, before: new Set(taken) })
    if (fate === 'steal') await lose()
    if (fate === 'refuse') return void response.writeHead(503).end()
    taken.push(id)
    if (fate === 'lose') response.destroy()
    else response.end()
  })
  return { url, taken, arrived }
}

async function readCursor(endpointId: string) {
  const [row] = await rig.database.sql<{ cursor: number; ahead: number[] }[]>`
    select cursor, ahead from webhook_endpoints where id = ${endpointId}`
  if (!row) throw new Error('the endpoint is gone')
  return row
}

const MAX_ROUNDS = 200

it('whatever is accepted, refused or lost, with two workers that lose their leases: nothing is lost, each transaction is in order, the cursor never goes back', async () => {
  const played = await fc.check(
    fc.asyncProperty(plays, async ({ events, first, fates }) => {
      let endpointId = ''
      const receiver = await serveFates([...fates], () => loseLease(rig, endpointId))
      endpointId = (await register(rig, receiver.url)).id
      const transactions = events.map((n) => `T-${n}`)
      const ids = await publish(rig, transactions.slice(0, first))
      const workers = [1, 2].map(() =>
        createDeliveryRound(changeLifecycle(rig.service.ctx, { processId: randomUUID() })),
      )
      let { cursor } = await readCursor(endpointId)
      for (let n = 0; n < MAX_ROUNDS; n += 1) {
        const rounds = await Promise.all(workers.map((round) => round()))
        if (n === 0) ids.push(...(await publish(rig, transactions.slice(first))))
        await Promise.all(rounds.map(({ finished }) => finished))
        const next = await readCursor(endpointId)
        expect(next.cursor).toBeGreaterThanOrEqual(cursor)
        expect(next.ahead.length).toBeLessThan(32)
        cursor = next.cursor
        if (n > 0 && (await readEndpoint(rig, endpointId)).pending === 0) break
        await passTime(rig)
      }
      expect(cursor).toBe(Number(ids.at(-1)))
      expect([...new Set(receiver.taken)].toSorted()).toEqual(ids.toSorted())
      for (const { id, before } of receiver.arrived) {
        const place = ids.indexOf(id)
        const earlier = ids.filter((_, n) => n < place && transactions[n] === transactions[place])
        expect(earlier.filter((one) => !before.has(one))).toEqual([])
      }
      // What is recorded is never sent again: a stolen lease repeats the wave of four calls that it cut off.
      const count = (fate: Fate) => fates.filter((one) => one === fate).length
      const most = ids.length + count('refuse') + count('lose') + 4 * count('steal')
      expect(receiver.arrived.length).toBeLessThanOrEqual(most)
      await callWebhooks(rig, 'DELETE', `/${endpointId}`)
    }),
    { numRuns: 15 },
  )
  expect(played.failed, fc.defaultReportMessage(played)).toBe(false)
}, 60_000)

it('two workers never have more than four calls to an endpoint in flight', async ({ signal }) => {
  let [open, most] = [0, 0]
  const receiver = await serve((response) => {
    open += 1
    most = Math.max(most, open)
    setImmediate(() => {
      open -= 1
      response.end()
    })
  })
  await register(rig, receiver.url)
  const ids = await publish(
    rig,
    Array.from({ length: 60 }, (_, n) => `T-${n}`),
  )
  const workers = [1, 2].map(() =>
    createDeliveryRound(changeLifecycle(rig.service.ctx, { processId: randomUUID() })),
  )
  while (receiver.seen.length < ids.length && !signal.aborted) {
    const rounds = await Promise.all(workers.map((round) => round()))
    await Promise.all(rounds.map(({ finished }) => finished))
  }
  expect(most).toBeLessThanOrEqual(4)
})

it('two workers send one event once', async () => {
  const receiver = await serve((response) => response.end())
  await register(rig, receiver.url)
  await publish(rig, ['T-ONE'])
  const workers = [1, 2].map(() =>
    createDeliveryRound(changeLifecycle(rig.service.ctx, { processId: randomUUID() })),
  )
  const rounds = await Promise.all(workers.map((round) => round()))
  await Promise.all(rounds.map(({ finished }) => finished))
  expect(receiver.seen).toHaveLength(1)
})
