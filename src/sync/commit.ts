import postgres from 'postgres'
import { formatTransactionKey } from '../db/transaction-key.ts'
import { recordChanges } from '../events/record-events.ts'
import {
  listPaymentChanges,
  PaymentElsewhereError,
  writePayments,
} from '../payments/apply-payments.ts'
import { isTransient } from '../platform/postgres/errors.ts'
import { pipeline, runPipelined } from '../platform/postgres/transaction.ts'
import type { Tx } from '../platform/postgres/types.ts'
import { type Attempt, lockHold } from '../refunds/attempt.ts'
import { needsReconciliation } from '../refunds/needs-reconciliation.ts'
import { type ReconcileInput, reconcileRefunds } from '../refunds/reconcile.ts'
import {
  type AppliedAnswer,
  adoptPayments,
  classifyAnswer,
  compareAnswers,
  keepOpenForRefunds,
  listFacts,
  recordCalls,
} from './apply-answers.ts'
import { type LockedAnswer, lockAnswers } from './fence.ts'
import { recordDisagreements } from './find-disagreements.ts'
import { finishCommit } from './finish-commit.ts'
import type { AnswerCommit, CommittedAnswer, QueryAnswer, SyncContext } from './types.ts'
import { LOST, listAnswered } from './types.ts'

/**
 * Commits the answer to a query. Answers that arrive while a commit runs share the next one, unless they concern
 * refunds. A commit that fails for a reason that may pass is repeated once. An answer that the database rejects
 * counts as a failed query.
 */
export async function commitAnswer(
  ctx: SyncContext,
  answer: QueryAnswer,
): Promise<CommittedAnswer> {
  const shared = answer.claim.hasRefunds
    ? 'needs_own_commit'
    : await ctx.answerCommits.add(answer, (answers) => commitTogether(ctx, answers))
  if (shared !== 'needs_own_commit') return shared
  const commit = () => commitAlone(ctx, answer)
  try {
    return await commit().catch((error: unknown) => {
      if (isWorthRepeating(error)) return commit()
      throw error
    })
  } catch (error) {
    const reason = explainRefusedAnswer(error)
    if (reason === undefined) throw error
    const { merchantCode, transactionId } = answer.claim
    const what = 'the answer of the gateway could not be stored; the query is retried'
    ctx.log.error({ err: error, merchantCode, transactionId }, what)
    const record = { ...answer.call.record, received: undefined }
    const call = { outcome: { kind: 'unknown' as const, reason }, record }
    return await commitAlone(ctx, { ...answer, call })
  }
}

/** Commits the answers that concern no refunds. If one makes the commit fail, each needs a commit of its own. */
async function commitTogether(
  ctx: SyncContext,
  answers: readonly QueryAnswer[],
): Promise<PromiseSettledResult<AnswerCommit>[]> {
  const keys = answers.map(({ claim: key, call }) => ({ key, listed: listAnswered(call).payments }))
  try {
    const ends = await runPipelined(ctx.db.sql, {
      open: (tx) => pipeline(lockAnswers(tx, answers), needsReconciliation(tx, keys)),
      work: async (tx, [locked, concernRefunds]) => {
        const own = locked.flatMap((one, index) => (one && !concernRefunds[index] ? [one] : []))
        const { committed, last } = await writeAnswers(ctx, tx, own)
        const value = answers.map(({ claim }, index): AnswerCommit => {
          if (locked[index] && concernRefunds[index]) return 'needs_own_commit'
          return committed.get(claim) ?? LOST_ANSWER
        })
        return { value, last }
      },
    })
    return ends.map((value) => ({ status: 'fulfilled', value }))
  } catch (error) {
    if (explainRefusedAnswer(error) === undefined && !isWorthRepeating(error)) {
      return answers.map(() => ({ status: 'rejected', reason: error }))
    }
    return answers.map(() => ({ status: 'fulfilled', value: 'needs_own_commit' }))
  }
}

async function commitAlone(ctx: SyncContext, answer: QueryAnswer): Promise<CommittedAnswer> {
  const { merchantCode, leaseLeftMs } = answer.claim
  // Acquired before the commit, so that it records no attempt that the breaker would reject.
  const breaker = ctx.gateway.breakers.of(merchantCode, 'refund')
  const permit = answer.call.outcome.kind === 'answered' ? breaker.tryAcquire() : undefined
  const { GATEWAY_TIMEOUT_MS: timeoutMs } = ctx.config
  const isInTime = () => leaseLeftMs() > timeoutMs
  let attempt: Attempt | undefined
  try {
    const committed = await runPipelined(ctx.db.sql, {
      open: (tx) =>
        pipeline(permit !== undefined && lockHold(tx, merchantCode), lockAnswers(tx, [answer])),
      work: async (tx, [, [locked]]) => {
        const sending = permit ? { breaker: permit, isInTime } : { pausedMs: breaker.waitMs() }
        const written = locked && (await writeWithRefunds(ctx, tx, locked, sending))
        return { value: written?.committed, last: written?.last }
      },
    })
    attempt = committed?.attempt
    return committed ?? LOST_ANSWER
  } finally {
    if (!attempt) permit?.release()
  }
}

const LOST_ANSWER: CommittedAnswer = { end: LOST, queryEnd: { kind: 'superseded' }, found: [] }

/** Writes answers that concern no refunds, and finishes the commit, in one round trip. */
async function writeAnswers(ctx: SyncContext, tx: Tx, locked: readonly LockedAnswer[]) {
  const { answers, changes, recording } = beginWriting(ctx, tx, locked)
  const items = answers.map((one) => {
    const payments = one.applied?.payments ?? one.known
    return { payments, ended: { claim: one.claim, end: classifyAnswer(one) }, ...describeItem(one) }
  })
  const { ends, found, last } = await finishCommit(ctx, tx, items, recording, changes)
  const committed = items.map(({ ended: { claim, end: queryEnd } }, index) => {
    const id = formatTransactionKey(claim)
    const own = found.filter((one) => formatTransactionKey(one) === id)
    return [claim, { end: ends[index] ?? LOST, queryEnd, found: own }] as const
  })
  return { committed: new Map(committed), last }
}

async function writeWithRefunds(
  ctx: SyncContext,
  tx: Tx,
  locked: LockedAnswer,
  sending: ReconcileInput['sending'],
) {
  const adopted = await adoptPayments(tx, locked)
  const { answers, changes, recording } = beginWriting(ctx, tx, [adopted.locked])
  // Recorded first, because the changes of refunds follow from these.
  const [recorded] = await pipeline(recording, recordChanges(tx, changes))
  const [answer] = answers
  if (!answer) throw new Error('an answer was not compared')
  const { claim, snapshot, applied, call } = answer
  const { attempt, ...refunds } = await reconcileRefunds(ctx, tx, claim, {
    snapshot: snapshot && { ...snapshot, changed: changes.length > 0 },
    answered: call.outcome.kind === 'answered',
    sending,
  })
  const queryEnd = keepOpenForRefunds(classifyAnswer(answer), refunds)
  const item = {
    ...describeItem(answer),
    payments: applied?.payments ?? listFacts(refunds),
    refunds,
    ended: attempt ? undefined : { claim, end: queryEnd },
  }
  const all = Promise.resolve([...adopted.found, ...recorded, ...refunds.found])
  const { ends, found, last } = await finishCommit(ctx, tx, [item, ...adopted.losing], all)
  return { committed: { end: ends[0] ?? LOST, queryEnd, attempt, found }, last }
}

function beginWriting({ config }: SyncContext, tx: Tx, locked: readonly LockedAnswer[]) {
  const answers = compareAnswers(config, locked)
  const written = answers.flatMap(({ claim: key, snapshot, applied, row: { firstAsOf } }) =>
    snapshot && applied ? [{ key, snapshot, applied, firstAsOf }] : [],
  )
  const recording = pipeline(
    recordCalls(tx, answers),
    writePayments(tx, written),
    recordDisagreements(tx, answers),
  ).then(([, , found]) => found)
  return { answers, changes: listPaymentChanges(written), recording }
}

function describeItem({ claim: key, row, applied, snapshot, moved }: AppliedAnswer) {
  return { key, row, applied, snapshot, moved }
}

/** Classes of SQLSTATE: data exceptions, violated constraints, exceeded limits. */
const CAUSED_BY_VALUE = /^(22|23|54)/

/** Undefined for an error that the answer did not cause, such as a deadlock. */
function explainRefusedAnswer(error: unknown): string | undefined {
  const refused = error instanceof postgres.PostgresError && CAUSED_BY_VALUE.test(error.code)
  return refused ? `the database rejected the answer (${error.code})` : undefined
}

function isWorthRepeating(error: unknown): boolean {
  return error instanceof PaymentElsewhereError || isTransient(error)
}
