import { expect } from 'vitest'
import { z } from 'zod'
import { Problem } from '../../../src/platform/http/problems.ts'
import { ExternalRefund } from '../../../src/refunds/external-view.ts'
import type { SandboxPayment } from '../../../src/sandbox/state.ts'
import { decide, listUnexplained, postDecision, readGatewayStatus, readRefunds } from './checks.ts'
import { hasAsked, hasSettled, pick, type Step, step } from './step.ts'
import { countMoved, inAccountOf, runPass, type World } from './world.ts'

/** A person does not wait for a review, and is right. Too early, they are refused. */
export function decideOpen(which: number): Step {
  return step(
    'decideOpen',
    [which],
    async (world) => {
      const open = (await readRefunds(world)).filter(
        ({ status }) => status === 'accepted' || status === 'unknown',
      )
      const refund = pick(open, which)
      const actual = refund && readGatewayStatus(world, refund.id)
      if (!refund || actual === 'accepted' || world.pause) return undefined
      const outcome = actual === 'succeeded' ? 'succeeded' : 'failed'
      const refused = await postDecision(world, refund.id, { outcome })
      if (refused === 'not_decidable') return 'refused a decision too early'
      if (refused === 'against_evidence') await decide(world, refund.id)
      return `decided while ${refund.status === 'accepted' ? 'accepted' : 'unknown'}`
    },
    hasAsked,
  )
}

/**
 * A person decides against the ledger that a refund failed, whose money moved. Evidence that is known keeps them from
 * it; otherwise the amount is refundable once more, until the notification comes.
 */
export function decideWrongly(which: number): Step {
  return step(
    'decideWrongly',
    [which],
    async (world) => {
      const moved = (await readRefunds(world)).filter(
        ({ id, status }) =>
          status === 'needs_review' && readGatewayStatus(world, id) === 'succeeded',
      )
      const refund = pick(moved, which)
      if (!refund || world.pause) return undefined
      const refused = await postDecision(world, refund.id, { outcome: 'failed' })
      if (refused !== undefined) {
        expect(refused).toBe('against_evidence')
        return 'refused a decision against evidence'
      }
      world.lies.add(refund.id)
      world.overdrawn = true
      return 'decided wrongly'
    },
    hasSettled,
  )
}

/**
 * The money of a refund comes back, and the gateway's ledger shows so. Not while the ledger lags, nor where an increase
 * that nothing explains, from before or at once, hides the fall: the amount would stay taken.
 */
export function comeBack(which: number): Step {
  return step(
    'comeBack',
    [which],
    async (world) => {
      if (world.pause || world.saved || world.restored) return undefined
      if (!world.payments.every(isShownAsIs)) return undefined
      await runPass(world, { ask: true })
      const hidden = await listUnexplained(world)
      const shown = (await readRefunds(world)).filter(
        ({ id, status, matched, paymentId }) =>
          status === 'succeeded' &&
          matched &&
          readGatewayStatus(world, id) === 'succeeded' &&
          !hidden.includes(paymentId),
      )
      const refund = pick(shown, which)
      if (!refund) return undefined
      expect(await postDecision(world, refund.id, { outcome: 'returned' })).toBeUndefined()
      takeBack(world, refund.id)
      for (let answers = 0; answers < 2; answers += 1) await runPass(world, { ask: true })
      return 'came back'
    },
    hasSettled,
  )
}

function isShownAsIs({ refundedAmountShown, listed, status }: SandboxPayment): boolean {
  return refundedAmountShown === null && listed && status === 'SUCCESS'
}

function takeBack({ payments }: World, id: string): void {
  for (const payment of payments) {
    const refund = payment.refunds.find(({ requestId }) => requestId === id)
    if (!refund) continue
    refund.status = 'failed'
    payment.refundedAmount = String(countMoved(payment))
  }
}

const Page = z.object({ data: z.array(ExternalRefund) })

async function listReserved(world: World) {
  const { rig, payments } = world
  const all: z.infer<typeof ExternalRefund>[] = []
  for (const { id } of payments) {
    const response = await rig.api(`/v1/payments/${id}/external-refunds?${inAccountOf(world)}`)
    if (response.status === 200) all.push(...Page.parse(await response.json()).data)
  }
  return all.filter(({ state }) => state === 'reserved')
}

/** A person decides about a refund made elsewhere, rightly, or wrongly that it never happened. */
export function decideExternal(which: number, isRight: boolean): Step {
  return step(
    'decideExternal',
    [which, isRight],
    async (world) => {
      const reserved = (await listReserved(world)).filter(
        ({ requestId }) => requestId !== null && world.portal.has(requestId),
      )
      const one = pick(reserved, which)
      if (!one || world.pause || world.lies.has(one.requestId ?? '')) return undefined
      const actual = world.early.has(one.requestId ?? '') ? 'part_of_first_sight' : 'matched'
      const outcome = isRight ? actual : 'never_happened'
      const response = await world.rig.api(
        `/v1/external-refunds/${one.id}/resolution?${inAccountOf(world)}`,
        {
          method: 'POST',
          headers: { 'content-type': 'application/json' },
          body: JSON.stringify({ outcome, reason: 'looked it up in the ledger' }),
        },
      )
      if (response.status === 200) {
        if (!isRight) world.overdrawn = true
        return isRight
          ? 'decided about an external refund'
          : 'decided wrongly about an external refund'
      }
      // Nothing that it could be is left without an explanation.
      expect({ isRight, status: response.status }).toEqual({ isRight: true, status: 409 })
      expect(Problem.parse(await response.json()).code).toBe('not_decidable')
      return 'refused a decision about an external refund'
    },
    ({ portal }) => portal.size > 0,
  )
}
