import { expect } from 'vitest'
import { withKey } from '../../support/api.ts'
import { KEY } from '../../support/service.ts'
import { readRefunds } from './read-ledgers.ts'
import { ask, makeRequest } from './requests.ts'
import { defineStep, pick } from './step.ts'
import type { Moment } from './wire.ts'
import { inAccountOf, playMeanwhile, type World } from './world.ts'

type Target = 'merchant' | 'payment' | 'refund'

/** What is held, since when (µs of the database's clock). */
export type HeldFrom = { target: Target; id: string; from: number }

/** A hold that was released, or is about to be. */
export type Hold = HeldFrom & { until: number }

/** Whether a hold that was acknowledged covers a payment and its refunds, or one refund. */
export function isHeld(
  { holds, account }: World,
  { paymentId, id }: { paymentId: string; id?: string },
): boolean {
  const keys = [`merchant/${account.merchantCode}`, `payment/${paymentId}`]
  return [...keys, ...(id === undefined ? [] : [`refund/${id}`])].some((key) => holds.has(key))
}

async function findSubject(
  world: World,
  target: Target,
  which: number,
): Promise<string | undefined> {
  if (target === 'merchant') return world.account.merchantCode
  if (target === 'payment') return pick(world.payments, which)?.id
  return pick(await readRefunds(world), which)?.id
}

async function readClock({ rig }: World): Promise<number> {
  const [row] = await rig.database.sql<{ now: number }[]>`
    select (extract(epoch from clock_timestamp()) * 1000000)::float8 as now`
  if (!row) throw new Error('the database shows no time')
  return row.now
}

async function change(
  world: World,
  method: 'PUT' | 'DELETE',
  { target, id }: { target: Target; id: string },
  key = KEY,
) {
  const path = `/v1/holds/${target}/${id}?${inAccountOf(world)}`
  const { headers } = withKey(key, { 'content-type': 'application/json' })
  const response = await fetch(world.rig.service.url + path, {
    method,
    headers,
    body: JSON.stringify({ reason: 'somebody doubts it' }),
  })
  await response.text()
  return response.status
}

/** Sets a hold: from its answer on, nothing that it covers may be recorded as being sent. */
async function setHold(world: World, target: Target, id: string): Promise<void> {
  expect(await change(world, 'PUT', { target, id })).toBe(200)
  const key = `${target}/${id}`
  if (!world.holds.has(key)) world.holds.set(key, { target, id, from: await readClock(world) })
}

/** Releases a hold; what is not held cannot be released. */
async function releaseHold(world: World, target: Target, id: string): Promise<void> {
  const key = `${target}/${id}`
  const held = world.holds.get(key)
  const until = await readClock(world)
  const status = await change(world, 'DELETE', { target, id })
  // A hold whose setting is lost may be anybody's: another one than who asked for a refund releases it.
  const isRefused = held && world.restored && status === 403
  const [another] = world.deciders
  const end = isRefused ? await change(world, 'DELETE', { target, id }, another) : status
  expect(end).toBe(held ? 200 : 409)
  world.holds.delete(key)
  if (held) world.pastHolds.push({ ...held, until })
}

export const hold = defineStep('hold', async (world, target: Target, which: number) => {
  const id = await findSubject(world, target, which)
  if (id === undefined) return undefined
  await setHold(world, target, id)
  return `held: ${target}`
})

/** A hold is set while a refund is being sent: either it is seen by the commit that records the attempt, or waits for it. */
export const holdDuring = defineStep('holdDuring', async (world, target: Target, at: Moment) => {
  const waiting = (await readRefunds(world)).find(({ status }) => status === 'pending')
  const asked = waiting?.id ?? (await ask(world, makeRequest(world, 0, 10)))
  const one = (await readRefunds(world)).find(({ id }) => id === asked)
  if (one?.status !== 'pending' || isHeld(world, one)) return undefined
  const ids = { merchant: world.account.merchantCode, payment: one.paymentId, refund: one.id }
  const begun = await playMeanwhile(world, at, () => setHold(world, target, ids[target]))
  return begun ? `held while ${at}` : undefined
})

/** Somebody releases a hold, or tries to where there is none. */
export const release = defineStep(
  'release',
  async (world, which: number) => {
    const held = pick([...world.holds.values()], which)
    if (held) {
      await releaseHold(world, held.target, held.id)
      return `released: ${held.target}`
    }
    const id = await findSubject(world, 'payment', which)
    if (id !== undefined) await releaseHold(world, 'payment', id)
    return 'refused a release'
  },
  { isPossible: ({ holds }, which) => holds.size > 0 || which === 0 },
)

export async function releaseAll(world: World): Promise<void> {
  for (const { target, id } of [...world.holds.values()]) await releaseHold(world, target, id)
}
