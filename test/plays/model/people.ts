import { expect } from 'vitest'
import { z } from 'zod'
import { Problem } from '../../../src/http/problems.ts'
import { ExternalRefund } from '../../../src/refunds/external-view.ts'
import type { StoredRefund } from '../../nightly/audit/ledgers.ts'
import { KEY } from '../../support/service.ts'
import { readGatewayStatus, readRefunds } from './check.ts'
import { call, type World } from './world.ts'

/** Who decides: one of the two others, or the one that asked for the refund. */
export type Decider = 0 | 1 | 'asker'

export type Outcome = 'succeeded' | 'failed' | 'returned'

export type LastDecision = { outcome: Outcome; who: Decider }

type Decision = { outcome: Outcome; againstEvidence?: boolean }

/** @returns the code of the refusal, or undefined when the decision was accepted */
export async function postDecision(
  world: World,
  id: string,
  decision: Decision,
  who: Decider,
): Promise<string | undefined> {
  const refused = await post(world, `refunds/${id}/resolution`, decision, who)
  if (refused === undefined) noteDecision(world, id, decision.outcome, who)
  return refused
}

async function post(
  world: World,
  path: string,
  decision: object,
  who: Decider,
): Promise<string | undefined> {
  const key = who === 'asker' ? KEY : world.stage.deciders[who]
  const body = { ...decision, reason: 'looked it up in the ledger' }
  const { status, answer } = await call(world, 'POST', path, { key, body })
  if (status === 200) return undefined
  expect([403, 409], JSON.stringify(answer)).toContain(status)
  return Problem.parse(answer).code
}

/** Keeps what a person has said, and whether the ledger says otherwise. */
function noteDecision(world: World, id: string, outcome: Outcome, who: Decider): void {
  const { told, misjudged, clockMs: at } = world
  const before = world.decided.get(id)
  world.decided.set(id, { outcome, who })
  const isSecond = before?.outcome === 'returned' && before.who !== who
  if (outcome !== 'returned') told.saidReturned.delete(id)
  else if (!isSecond) told.saidReturned.set(id, { people: 1, at })
  else told.saidReturned.set(id, { people: 2, at: told.saidReturned.get(id)?.at ?? at })
  if (outcome !== 'failed') told.successes.add(id)
  const hasMoved = readGatewayStatus(world, id) === 'succeeded'
  if (hasMoved === (outcome === 'succeeded')) misjudged.delete(id)
  else if (hasMoved || outcome === 'succeeded') misjudged.add(id)
  const isReleased = outcome === 'failed' || (outcome === 'returned' && isSecond)
  if (hasMoved && isReleased) world.overdrawn.add(findPaymentId(world, id))
}

function findPaymentId({ payments }: World, id: string): string {
  return payments.find(({ refunds }) => refunds.some((one) => one.requestId === id))?.id ?? ''
}

/** Somebody who did not decide what the refund is now. */
export function findAnother({ decided }: World, id: string): Decider {
  return decided.get(id)?.who === 0 ? 1 : 0
}

/** What a person who looks a refund up in the ledger decides; undefined while it can still change. */
export function findRightOutcome(
  world: World,
  { id, status }: Pick<StoredRefund, 'id' | 'status'>,
): Outcome | undefined {
  const actual = readGatewayStatus(world, id)
  if (actual === 'accepted' || world.pause?.refundId === id) return undefined
  if (actual === 'succeeded') return 'succeeded'
  const isBack = world.cameBack.has(id) && (status === 'succeeded' || status === 'returned')
  return isBack ? 'returned' : 'failed'
}

/**
 * A person decides by the gateway's ledger, and waits while it can still change.
 * @returns whether they decided
 */
export async function decide(world: World, id: string): Promise<boolean> {
  const refund = (await readRefunds(world)).find((one) => one.id === id)
  const outcome = refund && findRightOutcome(world, refund)
  if (outcome === undefined) return false
  const who = findAnother(world, id)
  const refused = await postDecision(world, id, { outcome }, who)
  if (refused === undefined) return true
  expect(refused).toBe('against_evidence')
  expect(await postDecision(world, id, { outcome, againstEvidence: true }, who)).toBeUndefined()
  return true
}

const Page = z.object({ data: z.array(ExternalRefund) })

/** The refunds made elsewhere, as people are shown them. */
export async function listExternal(world: World) {
  const all: z.infer<typeof ExternalRefund>[] = []
  for (const { id } of world.payments) {
    const { status, answer } = await call(world, 'GET', `payments/${id}/external-refunds`, {})
    if (status === 200) all.push(...Page.parse(answer).data)
  }
  return all
}

export type ExternalOutcome = 'matched' | 'part_of_first_sight' | 'never_happened'

/** @returns the code of the refusal, or undefined when the decision was accepted */
export async function postExternal(
  world: World,
  { id, requestId }: { id: string; requestId: string | null },
  decision: { outcome: ExternalOutcome; againstEvidence?: boolean },
): Promise<string | undefined> {
  const refused = await post(world, `external-refunds/${id}/resolution`, decision, 0)
  if (refused !== undefined || requestId === null) return refused
  const { neverHappened, firstSight } = world.told
  if (decision.outcome === 'never_happened') neverHappened.add(requestId)
  else neverHappened.delete(requestId)
  if (decision.outcome === 'part_of_first_sight') firstSight.add(requestId)
  return undefined
}

/** What a refund made elsewhere was, by the ledger; undefined for one that is ours, or can still change. */
export function findRightExternal(
  world: World,
  requestId: string | null,
): ExternalOutcome | undefined {
  if (requestId === null) return undefined
  const actual = readGatewayStatus(world, requestId)
  if (actual === 'failed' || actual === 'none') return 'never_happened'
  if (actual === 'accepted') return undefined
  return world.early.has(requestId) ? 'part_of_first_sight' : 'matched'
}
