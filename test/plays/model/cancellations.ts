import { expect } from 'vitest'
import { Problem } from '../../../src/http/problems.ts'
import type { StoredRefund } from '../../nightly/audit/ledgers.ts'
import { readRefunds, readUnmatched } from './read-ledgers.ts'
import { ask, makeRequest } from './requests.ts'
import { defineStep, hasAsked, pick } from './step.ts'
import type { Moment } from './wire.ts'
import { inAccountOf, playMeanwhile, type World } from './world.ts'

const UNSENT = ['awaiting_approval', 'pending']

/** @returns the code of the refusal, or undefined when the refund is cancelled */
async function postCancellation(world: World, id: string): Promise<string | undefined> {
  const path = `/v1/refunds/${id}/cancellation?${inAccountOf(world)}`
  const response = await world.rig.api(path, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ reason: 'the customer keeps the goods' }),
  })
  if (response.status !== 200) {
    expect(response.status).toBe(409)
    const { code } = Problem.parse(await response.json())
    expect(['already_sent', 'not_cancellable', 'growth_may_be_its_own']).toContain(code)
    return code
  }
  await response.text()
  world.cancelled.add(id)
  // Nothing keeps the amount of a refund reserved of whose sending nothing is left.
  const asked = world.asked.find((one) => one.id === id)
  if (asked && (world.lostSends.get(id) ?? 0) > 0) world.overdrawn.add(asked.paymentId)
  return undefined
}

/** Whether the newest answer shows as much growth that no known refund explains. */
export async function mayBeItsOwn(
  world: World,
  { paymentId, amount }: Pick<StoredRefund, 'paymentId' | 'amount'>,
): Promise<boolean> {
  return ((await readUnmatched(world)).get(paymentId) ?? 0) >= Number(amount)
}

/** A refund that was never sent is cancelled, and any other is not. */
export const cancel = defineStep(
  'cancel',
  async (world, which: number, openOnly: boolean) => {
    const shown = await readRefunds(world)
    const refund = pick(
      openOnly ? shown.filter(({ status }) => UNSENT.includes(status)) : shown,
      which,
    )
    if (!refund) return undefined
    const isItsOwn = await mayBeItsOwn(world, refund)
    const refused = await postCancellation(world, refund.id)
    const isUnsent = UNSENT.includes(refund.status) && world.pause?.refundId !== refund.id
    // Of one that was lost something may be known that its row does not say yet.
    if (!world.restored) expect(refused === undefined).toBe(isUnsent && !isItsOwn)
    if (refused === undefined || refused === 'growth_may_be_its_own') {
      expect(isItsOwn, `${refused ?? 'cancelled'} with this growth`).toBe(refused !== undefined)
    }
    if (refused === 'growth_may_be_its_own') return 'refused to cancel: growth_may_be_its_own'
    if (refused === 'already_sent') return 'refused to cancel: already_sent'
    if (refused === 'not_cancellable') return 'refused to cancel: not_cancellable'
    return refund.status === 'pending' ? 'cancelled' : 'cancelled before it was approved'
  },
  { isPossible: hasAsked },
)

/** A refund is cancelled while it is being sent. Either the cancellation or the attempt is recorded first. */
export const cancelDuring = defineStep('cancelDuring', async (world, at: Moment) => {
  const waiting = (await readRefunds(world)).find(({ status }) => status === 'pending')
  const asked = waiting?.id ?? (await ask(world, makeRequest(world, 0, 10)))
  const one = (await readRefunds(world)).find(({ id }) => id === asked)
  if (one?.status !== 'pending') return undefined
  let refused: string | undefined
  const begun = await playMeanwhile(world, at, async (refundId) => {
    refused = await postCancellation(world, refundId ?? one.id)
  })
  if (!begun) return undefined
  const isGrowth = refused === 'growth_may_be_its_own'
  if (at === 'answered' && !world.restored && !isGrowth) expect(refused).toBeUndefined()
  if (at === 'leaving') expect(refused).toBe('already_sent')
  if (at === 'answered') return refused === undefined ? 'cancelled while answered' : undefined
  return refused === undefined ? undefined : `refused to cancel while ${at}`
})

/** The merchant repeats the cancellations that were lost; what is known of a refund by then may refuse them. */
export async function repeatCancellations(world: World, ids: Iterable<string>): Promise<void> {
  const found = await readRefunds(world)
  for (const id of ids) if (found.some((one) => one.id === id)) await postCancellation(world, id)
}
