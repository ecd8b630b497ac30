import { withTimeout } from '../../../src/platform/concurrency/timing.ts'
import { syncDue } from '../../../src/sync/sync-due.ts'
import type { SyncContext } from '../../../src/sync/types.ts'
import { ask } from '../../support/ask.ts'
import { makeDue } from '../../support/refund-lab.ts'
import { waitUntil } from '../../support/wait-until.ts'
import type { Finding } from '../audit/audit.ts'
import { judge, settleAtGateway } from './observe.ts'
import { type Case, LONG_AGO_MS, type Play, RECORD_RESULT } from './plays.ts'
import type { Point } from './points.ts'
import type { Stage } from './stage.ts'
import type { Watch } from './statement-proxy.ts'
import type { Subject } from './subjects.ts'

/** What came of one point. */
export type Result = { point: string; moved: number; findings: Finding[] }

const find = (damage: Finding['damage'], rule: string, what: string): Finding => ({
  damage,
  rule,
  what,
})

/** Plays a part of the path without a fault. Returns its statements. */
export async function rehearse(stage: Stage, play: Play, subject: Subject): Promise<string[]> {
  const one = await play.prepare(stage)
  const watch = subject.lines.database.watch(play.steps)
  await trigger(play, stage, subject, one)
  // Sent after the commit, when the work has ended already; some work sends none.
  await waitUntil(() => watch.seen.includes('select pg_notify'), {
    what: 'NOTIFY',
    timeoutMs: 1_000,
  }).catch(() => {})
  const seen = [...watch.seen]
  const { findings } = await end(stage, one, subject)
  if (findings.length > 0) throw new Error(`without a fault: ${JSON.stringify(findings)}`)
  return seen
}

/** Plays a part of the path with a fault at the point, heals what it broke, and judges what both sides hold then. */
export async function playPoint(
  stage: Stage,
  play: Play,
  point: Point,
  subject: Subject,
): Promise<Result> {
  const one = await play.prepare(stage)
  const { lines } = subject
  const isStruck = arm(subject, play, point)
  const refused = await trigger(play, stage, subject, one)
  const struck = await waitUntil(isStruck, { what: point.name, timeoutMs: 5_000 }).then(
    () => true,
    () => false,
  )
  await lines.gateway.heal()
  const forgotten = subject.livesOn ? await findForgotten(stage, point, one) : []
  const repeated = play.trigger === 'request' ? await repeatRequest(subject, one) : []
  const { moved, findings } = await end(stage, one, subject)
  const missed: Finding[] = struck ? [] : [find('lost', 'a point is reached', point.name)]
  return {
    point: point.name,
    moved,
    findings: [...missed, ...refused, ...forgotten, ...repeated, ...findings],
  }
}

function arm({ lines, strike }: Subject, { steps }: Play, point: Point): () => boolean {
  if (point.kind === 'call') {
    lines.database.watch(steps)
    lines.gateway.arm({ cut: point.cut, strike })
    return () => lines.gateway.isStruck()
  }
  const { statement, edge } = point
  const watch: Watch = lines.database.watch(steps, { statement, edge, strike })
  return () => watch.isStruck()
}

/** Longer than any call, statement or wait for a connection. */
const ROUND_MS = 40_000

/** Starts the part of the path, and waits until it has ended. A request may fail, but may not be refused. */
async function trigger(play: Play, stage: Stage, subject: Subject, one: Case): Promise<Finding[]> {
  if (play.trigger === 'round') {
    await makeDue(stage.lab, one.payment)
    return await withTimeout(ROUND_MS, subject.runRound()).then(
      () => [],
      () => [find('stuck', 'a round ends', `not within ${ROUND_MS} ms`)],
    )
  }
  const answer = await postRefund(subject.url, one).catch(() => undefined)
  return answer ? judgeAnswer(answer, one) : []
}

/** The gateway's answer is evidence: a process that lost the connection while it recorded it records it again. */
async function findForgotten({ lab }: Stage, point: Point, one: Case): Promise<Finding[]> {
  if (point.kind !== 'statement' || !point.statement.startsWith(RECORD_RESULT)) return []
  const [last] = await lab.database.sql<{ outcome: string | null }[]>`
    select outcome from refund_attempts where refund_id = ${one.refundId} order by id desc limit 1`
  if (last?.outcome === 'answered' || last?.outcome === 'rejected') return []
  return [find('lost', "the gateway's answer is recorded", `as ${last?.outcome}`)]
}

/** Repeats the request with its key until it is answered. */
async function repeatRequest({ successor }: Subject, one: Case): Promise<Finding[]> {
  let answer: Answer | undefined
  const isAnswered = async () => {
    answer = await postRefund(successor.url, one)
    return answer.status < 500
  }
  await waitUntil(isAnswered, { what: 'the answer to the repeated request' })
  return answer ? judgeAnswer(answer, one) : []
}

type Answer = { status: number; text: string }

function judgeAnswer({ status, text }: Answer, { refundId }: Case): Finding[] {
  if (status >= 500 || (status === 202 && text.includes(refundId))) return []
  return [find('lost', 'a request is answered with 202', `${status}: ${text}`)]
}

async function postRefund(url: string, { payment, key, amount }: Case): Promise<Answer> {
  const response = await ask({ url, idempotencyKey: key }, payment.id, { amount })
  return { status: response.status, text: await response.text() }
}

async function end(stage: Stage, one: Case, { successor }: Subject) {
  await untilEnded(stage, one, successor.ctx)
  return await judge(stage, one, () => runRound(stage, one, successor.ctx))
}

/** Rounds in which the gateway has accepted what arrived, but does not show it: a refund may be sent again. */
const BLIND_ROUNDS = 2
/** Rounds after which nothing is left to learn. */
const ROUNDS = 5
/** More than REFUND_RESOLVE_FOR_MS. */
const TOO_LONG_AGO_MS = 300_000_000

/** Runs rounds of the sync until the refund has ended or waits for a person. */
async function untilEnded(stage: Stage, one: Case, ctx: SyncContext): Promise<void> {
  for (let round = 1; round <= 2 * ROUNDS; round += 1) {
    if (round > BLIND_ROUNDS) await settleAtGateway(stage, one)
    await stage.lab.age(one.refundId, round > ROUNDS ? TOO_LONG_AGO_MS : LONG_AGO_MS)
    await runRound(stage, one, ctx)
    if (round > BLIND_ROUNDS && (await hasEnded(stage, one))) return
  }
}

/** A row that a dying session still holds is skipped by the claim, and a connection may have to be opened anew. */
async function runRound({ lab }: Stage, { payment }: Case, ctx: SyncContext): Promise<void> {
  const isClaimed = async () => {
    await makeDue(lab, payment)
    return (await syncDue(ctx).catch(() => 0)) === 1
  }
  await waitUntil(isClaimed, { what: `a round for ${payment.transactionId}` })
}

async function hasEnded({ lab }: Stage, { refundId }: Case): Promise<boolean> {
  const [row] = await lab.database.sql<{ status: string }[]>`
    select status from refunds where refund_id = ${refundId}`
  return ['succeeded', 'failed', 'needs_review'].includes(row?.status ?? '')
}
