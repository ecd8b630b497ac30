import { pipeline, runPipelined } from '../platform/postgres/transaction.ts'
import type { Tx } from '../platform/postgres/types.ts'
import { sendAttempt } from '../refunds/answer.ts'
import type { Attempt, SentAttempt } from '../refunds/attempt.ts'
import { lockHold } from '../refunds/obstacle.ts'
import { reconcileRefunds } from '../refunds/reconcile.ts'
import { adoptPayments } from './adopt-payments.ts'
import {
  classifyAnswer,
  compareAnswers,
  type LockedAnswer,
  lockAnswers,
  writeAnswers,
} from './apply-answers.ts'
import { leaseMs, releaseClaim } from './claim-due.ts'
import { commitBatch } from './commit-batch.ts'
import type { SyncContext } from './context.ts'
import { finishCommit } from './finish-commit.ts'
import {
  explainRefusedAnswer,
  isWorthRepeating,
  logFindings,
  NO_FINDINGS,
  recordFindings,
} from './record-findings.ts'
import { recordRefundAnswer } from './record-refund-answer.ts'
import type { QueryEnd } from './schedule.ts'
import { type Claim, type ClaimEnd, LOST, type QueryAnswer } from './types.ts'

/** A recorded refund attempt. The claim continues until its result is recorded as well. */
type PendingAttempt = { attempt: Attempt; queryEnd: QueryEnd }

/**
 * Syncs a claimed transaction, in five steps:
 *
 * 1. query the gateway;
 * 2. apply its answer to the payments;
 * 3. reconcile the refunds with it, in the same commit;
 * 4. send the refund that step 3 prepared, if any;
 * 5. record the result, in a second commit.
 *
 * Both commits are fenced by the lease, and no database transaction is open during 1 and 4. Only an answer to a
 * refund is recorded without it.
 * @param onAnswer called between 1 and 2
 * @returns `handed_back` when the query was not sent or was cut short; the claim is released
 * @throws database errors; the lease ends and the transaction is due again
 */
export async function syncTransaction(
  ctx: SyncContext,
  claim: Claim,
  onAnswer: () => void,
): Promise<ClaimEnd | 'handed_back'> {
  const answer = await queryGateway(ctx, claim)
  if (!answer) {
    await releaseClaim(ctx, claim)
    return 'handed_back'
  }
  onAnswer()
  const committed = await ctx.tracing.run(planCommit, () => commitAnswer(ctx, answer))
  if (!('attempt' in committed)) return committed
  const sent = await sendAttempt(committed.attempt, ctx.givingUp)
  logSent(ctx, claim, sent)
  return await ctx.tracing.run(planCommit, () =>
    recordRefundAnswer(ctx, claim, sent, committed.queryEnd),
  )
}

const planCommit = () => ({ name: 'commit answer', kind: 'internal' as const })

/**
 * Step 1.
 * @returns undefined when the account's calls are paused, or the process stopped during the call
 */
async function queryGateway(ctx: SyncContext, claim: Claim): Promise<QueryAnswer | undefined> {
  const began = performance.now()
  const call = await ctx.gateway.queryPayments(claim, ctx.givingUp)
  const { kind } = call.outcome
  if ('paused' in call.outcome || (ctx.givingUp.aborted && kind !== 'answered')) return undefined
  return { claim, call, sentAfterMs: began - claim.knownAt, resume: ctx.tracing.capture() }
}

/**
 * Steps 2 and 3. Answers that arrive while a commit runs share the next one, except those that concern
 * refunds. An answer that cannot be stored counts as a failed query: it is retried, and abandoned in the end. A
 * fault of the database does not: the commit is repeated once, and otherwise the transaction is due again.
 */
export async function commitAnswer(
  ctx: SyncContext,
  answer: QueryAnswer,
): Promise<ClaimEnd | PendingAttempt> {
  const shared = answer.claim.hasRefunds
    ? 'needs_own_commit'
    : await ctx.answerCommits.add(answer, (answers) => commitBatch(ctx, answers))
  if (shared !== 'needs_own_commit') return shared
  const commit = () => commitSingle(ctx, answer)
  try {
    return await commit().catch((error: unknown) => {
      if (isWorthRepeating(error)) return commit()
      throw error
    })
  } catch (error) {
    const reason = explainRefusedAnswer(error)
    if (reason === undefined) throw error
    const { merchantCode, transactionId } = answer.claim
    ctx.log.error(
      { err: error, merchantCode, transactionId },
      'the answer of the gateway could not be stored; the query is retried',
    )
    const call = {
      outcome: { kind: 'unknown' as const, reason },
      record: { ...answer.call.record, received: undefined },
    }
    return await commitSingle(ctx, { ...answer, call })
  }
}

async function commitSingle(
  ctx: SyncContext,
  answer: QueryAnswer,
): Promise<ClaimEnd | PendingAttempt> {
  const { merchantCode, knownAt } = answer.claim
  // Acquired before the commit, so that no attempt is recorded that the breaker would reject.
  const breaker = ctx.breakers.of(merchantCode, 'refund')
  const permit = answer.call.outcome.kind === 'answered' ? breaker.tryAcquire() : undefined
  const { GATEWAY_TIMEOUT_MS: timeoutMs } = ctx.config
  const sendBefore = knownAt + leaseMs(timeoutMs) - timeoutMs
  let attempt: Attempt | undefined
  try {
    const open = (tx: Tx) =>
      pipeline(permit !== undefined && lockHold(tx, merchantCode), lockAnswers(tx, [answer]))
    const work = async (tx: Tx, [, [locked]]: [unknown, (LockedAnswer | undefined)[]]) => {
      if (!locked) return { value: { end: LOST, findings: NO_FINDINGS } }
      const adopted = await adoptPayments(tx, locked)
      const [applied] = compareAnswers(ctx.config, [adopted.locked])
      if (!applied) throw new Error('the answer was not compared')
      const { claim, call, row, snapshot } = applied
      const [, { found, ipnDelaysS }] = await pipeline(
        writeAnswers(tx, [applied]),
        recordFindings(tx, [applied]),
      )
      const refunds = await reconcileRefunds(ctx, tx, claim, {
        snapshot,
        changed: applied.applied?.changed === true,
        answered: call.outcome.kind === 'answered',
        sending: permit ? { breaker: permit, sendBefore } : { pausedMs: breaker.waitMs() },
      })
      const findings = { found: [...adopted.found, ...found, ...refunds.found], ipnDelaysS }
      const queryEnd = classifyAnswer(call, row.newer, applied.applied)
      const continues = refunds.attempt !== undefined
      const finished = await finishCommit(ctx, tx, {
        claim,
        row,
        refunds,
        losing: adopted.losing,
        applied: applied.applied,
        moved: applied.moved,
        snapshot,
        queryEnd,
        continues,
        found: findings.found,
      })
      attempt = refunds.attempt
      const pending = attempt && { attempt, queryEnd: finished.queryEnd }
      return { value: { end: pending ?? finished.end, findings }, last: finished.last }
    }
    const { end, findings } = await runPipelined(ctx.sql, { open, work })
    logFindings(ctx, findings, [answer])
    return end
  } catch (error) {
    attempt = undefined
    throw error
  } finally {
    if (!attempt) permit?.release()
  }
}

function logSent(
  { log }: Pick<SyncContext, 'log'>,
  { merchantCode }: Claim,
  { attempt, call }: SentAttempt,
): void {
  const { refundId } = attempt
  log.info({ merchantCode, refundId, outcome: call.outcome.kind }, 'refund sent')
}
