import { pipeline, runPipelined } from '../platform/postgres/transaction.ts'
import type { Tx } from '../platform/postgres/types.ts'
import { needsReconciliation } from '../refunds/case.ts'
import {
  type AppliedAnswer,
  classifyAnswer,
  compareAnswers,
  type LockedAnswer,
  lockAnswers,
  writeAnswers,
} from './apply-answers.ts'
import type { SyncContext } from './context.ts'
import { listAnswered } from './list-answered.ts'
import { prepareCommittedEvents, readCommittedObjects } from './record-committed-events.ts'
import {
  explainRefusedAnswer,
  isWorthRepeating,
  logFindings,
  recordFindings,
} from './record-findings.ts'
import { listStateChanges, summarise, type TransactionSummary } from './summarise.ts'
import { type AnswerCommit, LOST, type QueryAnswer } from './types.ts'
import { writeTransactions } from './write-transactions.ts'

/**
 * Commits several answers together, except those that concern refunds. When one answer makes the commit fail,
 * all of them need a commit of their own, so that one bad answer does not fail the others.
 * @returns in the order of the answers
 */
export async function commitBatch(
  ctx: SyncContext,
  answers: readonly QueryAnswer[],
): Promise<PromiseSettledResult<AnswerCommit>[]> {
  const keys = answers.map(({ claim, call }) => ({
    key: claim,
    listed: listAnswered(call).payments,
  }))
  try {
    const { commits, findings } = await runPipelined(ctx.sql, {
      open: (tx) => pipeline(lockAnswers(tx, answers), needsReconciliation(tx, keys)),
      work: (tx, opened) => writeBatch(ctx, tx, answers, opened),
    })
    logFindings(ctx, findings, answers)
    return commits.map((value) => ({ status: 'fulfilled', value }))
  } catch (error) {
    if (explainRefusedAnswer(error) === undefined && !isWorthRepeating(error)) {
      return answers.map(() => ({ status: 'rejected', reason: error }))
    }
    return answers.map(() => ({ status: 'fulfilled', value: 'needs_own_commit' }))
  }
}

async function writeBatch(
  ctx: Pick<SyncContext, 'config' | 'encryption'>,
  tx: Tx,
  answers: readonly QueryAnswer[],
  [locked, concernRefunds]: [(LockedAnswer | undefined)[], boolean[]],
) {
  const applied = compareAnswers(
    ctx.config,
    locked.flatMap((one, index) => (one && !concernRefunds[index] ? [one] : [])),
  )
  const summaries = new Map(
    applied.flatMap((one) => {
      const summary = summariseAnswer(one)
      return summary ? [[one.claim, summary]] : []
    }),
  )
  const changes = applied.map(({ claim, applied: payments }) => {
    const { isRevised = false, turnsPaid = false, turnsFinal = false } = summaries.get(claim) ?? {}
    const turns = { isRevised, turnsPaid, turnsFinal }
    const none = { drafts: [], external: [], moved: [] }
    return { claim, changes: payments?.changes ?? [], ...turns, ...none }
  })
  const written = applied.map(({ claim, call, row, applied: payments }) => ({
    key: claim,
    summary: summaries.get(claim),
    ended: { claim, end: classifyAnswer(call, row.newer, payments) },
    withRefunds: false,
  }))
  const [, findings, ended, objects] = await pipeline(
    writeAnswers(tx, applied, listStateChanges([...summaries.values()])),
    recordFindings(tx, applied),
    writeTransactions(tx, ctx.config, written),
    readCommittedObjects(tx, changes),
  )
  const abandoned = applied.flatMap(({ claim }, index) =>
    ended[index]?.next === 'abandon' ? [claim] : [],
  )
  const last = await prepareCommittedEvents(ctx, tx, changes, objects, {
    found: findings.found,
    abandoned,
  })
  const ends = new Map(applied.map(({ claim }, index) => [claim, ended[index]]))
  const commits = answers.map(({ claim }, index): AnswerCommit => {
    if (locked[index] && concernRefunds[index]) return 'needs_own_commit'
    return ends.get(claim) ?? LOST
  })
  return { value: { commits, findings }, last }
}

/** @returns undefined when no answer was applied, and the row is as its payments are */
function summariseAnswer({
  claim,
  row,
  known,
  applied,
  snapshot,
}: AppliedAnswer): TransactionSummary | undefined {
  const stored = { payments: known, changed: false, unapplied: row.unappliedEntries }
  const { payments, changed, unapplied } = applied ?? stored
  const facts = { payments, changed, unapplied, refundsOpen: false }
  const summary = summarise({ claim, ...facts, snapshot, before: row })
  return applied || summary.isRevised ? summary : undefined
}
