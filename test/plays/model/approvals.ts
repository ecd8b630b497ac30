import { expect } from 'vitest'
import { addSealKey, openDataKeys } from '../../../src/db/data-keys.ts'
import { Problem } from '../../../src/http/problems.ts'
import { reconcileUnqueried } from '../../../src/maintenance/rechecks.ts'
import { resealData } from '../../../src/maintenance/reseal.ts'
import { withKey } from '../../support/api.ts'
import { KEY } from '../../support/service.ts'
import { mayBeItsOwn } from './cancellations.ts'
import { readRefunds } from './read-ledgers.ts'
import { defineStep, hasAsked } from './step.ts'
import type { Deed } from './tally.ts'
import { inAccountOf, type World } from './world.ts'

type Decision = 'approval' | 'decline'

/** Who decides: another principal, or the one that asked. */
const KEYS = { another: (world: World) => world.approver, same: () => KEY }

/** A person approves or declines one of the refunds that await it, if it is not too late. */
async function decideApproval(
  world: World,
  which: number,
  decision: Decision,
  who: keyof typeof KEYS,
): Promise<Deed | undefined> {
  const waiting = (await readRefunds(world)).filter(({ status }) => status === 'awaiting_approval')
  const refund = waiting[which % Math.max(1, waiting.length)]
  if (!refund) return
  const { url } = world.rig.service
  const path = `/v1/refunds/${refund.id}/${decision}?${inAccountOf(world)}`
  const isItsOwn = await mayBeItsOwn(world, refund)
  const response = await fetch(url + path, { method: 'POST', ...withKey(KEYS[who](world)) })
  const { status } = response
  const code = status === 200 ? undefined : Problem.parse(await response.json()).code
  const after = (await readRefunds(world)).find(({ id }) => id === refund.id)?.status
  const decided = decision === 'approval' ? 'pending' : 'failed'
  // Refused after its time, until the pass ends it.
  const allowed = status === 409 ? [409, 'awaiting_approval'] : [200, decided]
  const expected = who === 'another' ? allowed : [status === 409 ? 409 : 403, 'awaiting_approval']
  expect([status, after]).toEqual(expected)
  const isRefused = decision === 'decline' && who === 'another' && isItsOwn
  if (status === 200 || code === 'growth_may_be_its_own') expect(status === 409).toBe(isRefused)
  if (code === 'growth_may_be_its_own') return 'refused to decline: growth_may_be_its_own'
  if (status === 409) return 'refused an approval after its time'
  if (status === 403) return 'refused an approval by the same person'
  if (decision === 'decline') return 'declined'
  world.asked = world.asked.map((one) =>
    one.id === refund.id ? { ...one, atMs: world.clockMs } : one,
  )
  return 'approved'
}

export type ApprovalStep = readonly ['approval' | 'decline', 'another' | 'same']

export const decideApprovalOf = defineStep(
  'decideApprovalOf',
  (world, which: number, ...how: ApprovalStep) => decideApproval(world, which, ...how),
  { isPossible: (world) => world.approvalAbove !== null && hasAsked(world) },
)

/** Ends what was not approved or sent in time, of both accounts. */
export async function expireUnsent({ ctx, rig }: World): Promise<void> {
  const { accounts } = rig.service.ctx.config
  const both = { ...ctx, config: { ...ctx.config, accounts } }
  await reconcileUnqueried(both)
}

/** The keys of a changing `DATA_ENCRYPTION_KEY`; `next` while it changes. */
export type RootKeys = { n: number; current: string; next: string | undefined }

const makeRoot = (n: number) => Buffer.alloc(32, n).toString('base64')

/** Half of the processes start with a new key and the old one, the others with both the other way round. */
export async function changeKey(world: World): Promise<Deed | undefined> {
  const { roots, rig } = world
  if (roots.next !== undefined) return undefined
  roots.n += 1
  roots.next = makeRoot(roots.n)
  const { sql } = rig.database
  const { current, next } = roots
  const served = { encryption: await openDataKeys(sql, { current, previous: next }) }
  Object.assign(rig.service.ctx, served)
  setEncryption(world, await openDataKeys(sql, { current: next, previous: current }))
  return 'changed the key'
}

/** Everything is encrypted again, after which the old key is gone. */
export async function reseal(world: World): Promise<Deed | undefined> {
  const { roots, rig } = world
  if (roots.next === undefined) return undefined
  const { sql } = rig.database
  const both = { current: roots.next, previous: roots.current }
  await addSealKey(sql, both)
  // It is in use at once, also for the processes that have not read it yet.
  await sql`update data_keys set created_at = created_at - interval '1 minute'`
  const { unreadable } = await resealData(sql, await openDataKeys(sql, both), 2)
  expect(unreadable).toBe(0)
  roots.current = roots.next
  roots.next = undefined
  const encryption = await openDataKeys(sql, { current: roots.current })
  Object.assign(rig.service.ctx, { encryption })
  setEncryption(world, encryption)
  return 'sealed again'
}

function setEncryption(world: World, encryption: World['ctx']['encryption']): void {
  for (const one of [world, world.other]) if (one) one.ctx = { ...one.ctx, encryption }
}
