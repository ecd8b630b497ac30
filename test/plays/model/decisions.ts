import { expect } from 'vitest'
import { Problem } from '../../../src/http/problems.ts'
import type { SandboxPayment } from '../../../src/sandbox/state.ts'
import type { StoredRefund } from '../../nightly/audit/ledgers.ts'
import { KEY } from '../../support/service.ts'
import { readGatewayStatus, readRefunds, readUnmatched } from './check.ts'
import { runPass, shiftTime } from './clock.ts'
import {
  type Decider,
  decide,
  findAnother,
  findRightExternal,
  type LastDecision,
  listExternal,
  type Outcome,
  postDecision,
  postExternal,
} from './people.ts'
import { mayBeItsOwn } from './requests.ts'
import { defineStep, hasAsked, hasSettled, pick } from './step.ts'
import { call, countMoved, SCHEDULE, type World } from './world.ts'

export type ApprovalStep = readonly ['approval' | 'decline', 'another' | 'same']

/** Another principal, or the one that asked, approves or declines a refund that awaits it, if it is not too late. */
export const decideApprovalOf = defineStep<[which: number, ...how: ApprovalStep]>(
  'decideApprovalOf',
  { isPossible: ({ options, asked }) => options.approvalAbove !== null && asked.length > 0 },
  async (world, which, decision, who) => {
    const waiting = (await readRefunds(world)).filter((one) => one.status === 'awaiting_approval')
    const refund = pick(waiting, which)
    if (!refund) return undefined
    const isItsOwn = await mayBeItsOwn(world, refund)
    const key = who === 'another' ? world.stage.approver : KEY
    const { status, answer } = await call(world, 'POST', `refunds/${refund.id}/${decision}`, {
      key,
    })
    const code = status === 200 ? undefined : Problem.parse(answer).code
    const after = (await readRefunds(world)).find(({ id }) => id === refund.id)?.status
    const decided = decision === 'approval' ? 'pending' : 'failed'
    // Refused after its time, until the pass ends it.
    const allowed = status === 409 ? [409, 'awaiting_approval'] : [200, decided]
    const refused = [status === 409 ? 409 : 403, 'awaiting_approval']
    expect([status, after]).toEqual(who === 'another' ? allowed : refused)
    const isRefused = decision === 'decline' && who === 'another' && isItsOwn
    if (status === 200 || code === 'growth_may_be_its_own') expect(status === 409).toBe(isRefused)
    if (code === 'growth_may_be_its_own') return 'refused to decline: growth_may_be_its_own'
    if (status === 409) return 'refused an approval after its time'
    if (status === 403) return 'refused an approval by the same person'
    if (decision === 'decline') return 'declined'
    const asked = world.asked.find(({ id }) => id === refund.id)
    if (asked) asked.atMs = world.clockMs
    return 'approved'
  },
)

export const decideOne = defineStep('decideOne', hasAsked, async (world, which: number) => {
  const open = (await readRefunds(world)).filter(({ status }) => status === 'needs_review')
  const refund = pick(open, which)
  if (!refund) return undefined
  return (await decide(world, refund.id)) ? 'decided in review' : undefined
})

/** A person does not wait for a review, and is right. Too early, they are refused. */
export const decideOpen = defineStep('decideOpen', hasAsked, async (world, which: number) => {
  const open = (await readRefunds(world)).filter(
    ({ status }) => status === 'accepted' || status === 'unknown',
  )
  const refund = pick(open, which)
  const actual = refund && readGatewayStatus(world, refund.id)
  if (!refund || actual === 'accepted' || world.pause) return undefined
  const outcome = actual === 'succeeded' ? 'succeeded' : 'failed'
  const refused = await postDecision(world, refund.id, { outcome }, 0)
  if (refused === 'not_decidable') return 'refused a decision too early'
  if (refused === 'against_evidence') await decide(world, refund.id)
  return `decided while ${refund.status === 'accepted' ? 'accepted' : 'unknown'}`
})

/** Nobody decides about what they asked for, while somebody else can. */
export const decideOwn = defineStep('decideOwn', hasAsked, async (world, which: number) => {
  const open = (await readRefunds(world)).filter(({ status }) => status === 'needs_review')
  const refund = pick(open, which)
  if (!refund) return undefined
  const decision = { outcome: 'failed', againstEvidence: true } as const
  expect(await postDecision(world, refund.id, decision, 'asker')).toBe('same_person')
  return 'refused a decision by the one that asked'
})

/**
 * A person decides against the ledger that a refund failed, whose money moved. Evidence that is known keeps them from
 * it; otherwise the amount is refundable once more, until the notification comes.
 */
export const decideWrongly = defineStep(
  'decideWrongly',
  hasSettled,
  async (world, which: number) => {
    const moved = (await readRefunds(world)).filter(
      ({ id, status }) => status === 'needs_review' && readGatewayStatus(world, id) === 'succeeded',
    )
    const refund = pick(moved, which)
    if (!refund || world.pause) return undefined
    const who = findAnother(world, refund.id)
    const refused = await postDecision(world, refund.id, { outcome: 'failed' }, who)
    if (refused === undefined) return 'decided wrongly'
    expect(refused).toBe('against_evidence')
    return 'refused a decision against evidence'
  },
)

/** A person who looks it up confirms a success that was only inferred; one click. */
export const confirmInferred = defineStep(
  'confirmInferred',
  hasSettled,
  async (world, which: number) => {
    const inferred = (await readRefunds(world)).filter(
      ({ id, status, inferred }) =>
        status === 'succeeded' && inferred && readGatewayStatus(world, id) === 'succeeded',
    )
    const refund = pick(inferred, which)
    if (!refund || world.pause) return undefined
    const who = findAnother(world, refund.id)
    const refused = await postDecision(world, refund.id, { outcome: 'succeeded' }, who)
    // A failure that was notified, and not yet handled, speaks against it.
    if (refused !== undefined) expect(refused).toBe('against_evidence')
    return refused === undefined ? 'confirmed an inferred success' : undefined
  },
)

/** Statuses that a person may decide otherwise. */
const ENDED = ['succeeded', 'failed', 'returned'] as const

/**
 * A refund that ended is decided again, rightly or not, by whoever decided it last or by another. Only another one may
 * release what was reserved.
 */
export const decideAgain = defineStep(
  'decideAgain',
  hasAsked,
  async (world, which: number, outcome: Outcome, who: 0 | 1) => {
    const ended = (await readRefunds(world)).flatMap((one) => {
      const status = ENDED.find((end) => end === one.status)
      return status === undefined ? [] : [{ ...one, status }]
    })
    const sent = ended.filter(({ id }) => world.sends.has(id))
    const refund = pick(sent.length > 0 ? sent : ended, which)
    if (!refund || world.pause) return undefined
    const before = world.decided.get(refund.id)
    const last = before?.outcome === refund.status && !refund.inferred ? before.who : undefined
    if (readGatewayStatus(world, refund.id) === 'accepted') return undefined
    const first = await postDecision(world, refund.id, { outcome }, who)
    const answer =
      first === 'against_evidence'
        ? await postDecision(world, refund.id, { outcome, againstEvidence: true }, who)
        : first
    return expectLegal(refund, last, { outcome, who }, answer)
  },
)

const RELEASES_NOTHING: readonly string[] = ['failed as succeeded', 'succeeded as returned']

type EndedRefund = Pick<StoredRefund, 'inferred' | 'released' | 'failure'> & {
  status: (typeof ENDED)[number]
}

/**
 * Checks that the answer to a decision about a refund that had ended is one that the rules allow.
 * @param last who decided what it was; undefined if evidence did
 */
function expectLegal(
  { status, inferred, released, failure }: EndedRefund,
  last: Decider | undefined,
  { outcome, who }: LastDecision,
  answer: string | undefined,
): string | undefined {
  const said = `${status} decided as ${outcome} by ${who}, after ${last}: ${answer}`
  const changesNothing = status === outcome && !inferred && (status !== 'returned' || released)
  switch (answer) {
    case undefined:
      expect(changesNothing, said).toBe(false)
      // What releases nothing takes no second person.
      expect(last === who && !RELEASES_NOTHING.includes(`${status} as ${outcome}`), said).toBe(
        false,
      )
      return status === outcome && inferred
        ? 'confirmed an inferred success'
        : `decided again: ${status} as ${outcome}`
    case 'same_person':
      expect(last, said).toBe(who)
      return 'refused to decide again by the same person'
    case 'not_decidable':
      expect(changesNothing || (status === 'failed' && failure !== 'resolved'), said).toBe(true)
      return 'refused to decide again'
    default:
      throw new Error(said)
  }
}

/**
 * The money of a refund comes back, and the gateway's ledger shows so; two answers or a second person release it. Not
 * while the ledger lags, nor where an increase that nothing explains, from before or at once, hides the fall: the amount
 * would stay taken.
 */
export const comeBack = defineStep(
  'comeBack',
  hasSettled,
  async (world, which: number, by: 'answers' | 'people') => {
    if (world.pause || world.saved || world.restored) return undefined
    if (!world.payments.every(isShownAsIs)) return undefined
    await runPass(world, { ask: true })
    const unmatched = await readUnmatched(world)
    const shown = (await readRefunds(world)).filter(
      ({ id, status, matched, paymentId }) =>
        status === 'succeeded' &&
        matched &&
        readGatewayStatus(world, id) === 'succeeded' &&
        (unmatched.get(paymentId) ?? 0) <= 0,
    )
    const refund = pick(shown, which)
    if (!refund) return undefined
    takeBack(world, refund.id)
    const first = findAnother(world, refund.id)
    const decision = { outcome: 'returned' } as const
    expect(await postDecision(world, refund.id, decision, first)).toBeUndefined()
    if (by === 'people') {
      const again = { ...decision, againstEvidence: true }
      const second = findAnother(world, refund.id)
      expect(await postDecision(world, refund.id, again, second)).toBeUndefined()
      return 'came back: people'
    }
    for (let answers = 0; answers < 2; answers += 1) {
      await runPass(world, { ask: true })
      await shiftTime(world, SCHEDULE.confirmMs)
    }
    await runPass(world, { ask: true })
    return 'came back: answers'
  },
)

function isShownAsIs({ refundedAmountShown, listed, status }: SandboxPayment): boolean {
  return refundedAmountShown === null && listed && status === 'SUCCESS'
}

function takeBack({ payments, cameBack }: World, id: string): void {
  cameBack.add(id)
  for (const payment of payments) {
    const refund = payment.refunds.find(({ requestId }) => requestId === id)
    if (!refund) continue
    refund.status = 'failed'
    payment.refundedAmount = String(countMoved(payment))
  }
}

/** A person decides about a refund made elsewhere, rightly, or wrongly that it never happened. */
export const decideExternal = defineStep(
  'decideExternal',
  { isPossible: ({ portal }) => portal.size > 0 },
  async (world, which: number, isRight: boolean) => {
    const reserved = (await listExternal(world)).filter(
      ({ state, requestId }) =>
        state === 'reserved' && requestId !== null && world.portal.has(requestId),
    )
    const one = pick(reserved, which)
    if (!one || world.pause) return undefined
    const right = findRightExternal(world, one.requestId)
    const outcome = isRight ? right : 'never_happened'
    if (outcome === undefined) return undefined
    let refused = await postExternal(world, one, { outcome })
    // Its failure was notified as well, or growth that nothing else explains stands against it.
    if (refused === 'against_evidence') {
      refused = await postExternal(world, one, { outcome, againstEvidence: true })
    }
    if (refused === undefined) {
      if (outcome === right) return 'decided about an external refund'
      world.overdrawn.add(one.paymentId)
      return 'decided wrongly about an external refund'
    }
    // Nothing that it could be is left without an explanation.
    expect({ outcome, refused }).toEqual({ outcome: right, refused: 'not_decidable' })
    return 'refused a decision about an external refund'
  },
)
