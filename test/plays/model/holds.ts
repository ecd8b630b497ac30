import { expect } from 'vitest'
import { readRefunds } from './check.ts'
import { playMeanwhile } from './clock.ts'
import { findPending } from './requests.ts'
import { defineStep, pick } from './step.ts'
import type { Moment } from './wire.ts'
import { call, type World } from './world.ts'

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
  const keys = [`merchant/${account.merchantCode}`, `payment/${paymentId}`, `refund/${id}`]
  return keys.some((key) => holds.has(key))
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

async function readClock({ sql }: World): Promise<number> {
  const [row] = await sql<{ now: number }[]>`
    select (extract(epoch from clock_timestamp()) * 1000000)::float8 as now`
  if (!row) throw new Error('the database shows no time')
  return row.now
}

async function change(world: World, method: 'PUT' | 'DELETE', key: string, by?: string) {
  const body = { reason: 'somebody doubts it' }
  const as = by === undefined ? { body } : { body, key: by }
  return (await call(world, method, `holds/${key}`, as)).status
}

/** Sets a hold: from its answer on, nothing that it covers may be recorded as being sent. */
async function setHold(world: World, target: Target, id: string): Promise<void> {
  const key = `${target}/${id}`
  expect(await change(world, 'PUT', key)).toBe(200)
  if (!world.holds.has(key)) world.holds.set(key, { target, id, from: await readClock(world) })
}

/** Releases a hold; what is not held cannot be released. */
async function releaseHold(world: World, key: string): Promise<void> {
  const held = world.holds.get(key)
  const until = await readClock(world)
  const status = await change(world, 'DELETE', key)
  // A hold whose setting is lost may be anybody's: another one than who asked for a refund releases it.
  const isRefused = held && world.restored && status === 403
  const [another] = world.stage.deciders
  const end = isRefused ? await change(world, 'DELETE', key, another) : status
  expect(end).toBe(held ? 200 : 409)
  world.holds.delete(key)
  if (held) world.pastHolds.push({ ...held, until })
}

export const hold = defineStep('hold', {}, async (world, target: Target, which: number) => {
  const id = await findSubject(world, target, which)
  if (id === undefined) return undefined
  await setHold(world, target, id)
  return `held: ${target}`
})

/** A hold is set while a refund is being sent: either it is seen by the commit that records the attempt, or waits for it. */
export const holdDuring = defineStep(
  'holdDuring',
  {},
  async (world, target: Target, at: Moment) => {
    const one = await findPending(world)
    if (!one || isHeld(world, one)) return undefined
    const ids = { merchant: world.account.merchantCode, payment: one.paymentId, refund: one.id }
    const begun = await playMeanwhile(world, at, () => setHold(world, target, ids[target]))
    return begun ? `held while ${at}` : undefined
  },
)

/** Somebody releases a hold, or tries to where there is none. */
export const release = defineStep<[which: number]>(
  'release',
  { isPossible: ({ holds }, which) => holds.size > 0 || which === 0 },
  async (world, which) => {
    const held = pick([...world.holds], which)
    if (held) {
      await releaseHold(world, held[0])
      return `released: ${held[1].target}`
    }
    const id = await findSubject(world, 'payment', which)
    if (id !== undefined) await releaseHold(world, `payment/${id}`)
    return 'refused a release'
  },
)

export async function releaseAll(world: World): Promise<void> {
  for (const key of [...world.holds.keys()]) await releaseHold(world, key)
}
