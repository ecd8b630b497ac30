import { formatTransactionKey } from '../db/transaction-key.ts'
import { pipeline } from '../platform/postgres/pipeline.ts'
import { runInTransaction } from '../platform/postgres/transaction.ts'
import type { Tx } from '../platform/postgres/types.ts'
import { needsReconciliation } from '../refunds/reconcile/needs-reconciliation.ts'
import { applyAnswers, classifyAnswer, lockAnswers } from './apply-answers.ts'
import type { SyncContext } from './context.ts'
import { endClaims } from './end-claims.ts'
import { explainRefusedAnswer, isWorthRepeating } from './explain-refused-answer.ts'
import { listAnswered } from './list-answered.ts'
import { readCommittedObjects, recordCommittedEvents } from './record-committed-events.ts'
import { type Findings, logFindings, recordFindings } from './record-findings.ts'
import { summarise, writeSummaries } from './summarise.ts'
import { type AnswerCommit, LOST, type QueryAnswer } from './types.ts'

/**
 * Commits several answers together, except those that concern refunds. When one answer makes the commit fail,
 * all of them need a commit of their own, so that one bad answer does not fail the others.
 * @returns in the order of the answers
 */
export async function commitBatch(
  ctx: SyncContext,
  answers: readonly QueryAnswer[],
): Promise<PromiseSettledResult<AnswerCommit>[]> {
  try {
    const { commits, findings } = await runInTransaction(ctx.sql, (tx) =>
      writeBatch(ctx, tx, answers),
    )
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
): Promise<{ commits: AnswerCommit[]; findings: Findings }> {
  const locked = await lockAnswers(tx, answers)
  const concernRefunds = await needsReconciliation(
    tx,
    locked.map(({ claim, call }) => ({ key: claim, listed: listAnswered(call).payments })),
  )
  const applied = await applyAnswers(
    tx,
    locked.filter((_, index) => !concernRefunds[index]),
  )
  const summaries = applied.flatMap(({ claim, row, applied: payments, snapshot }) =>
    payments ? [summarise({ claim, ...payments, refundsOpen: false, snapshot, before: row })] : [],
  )
  const final = new Set(summaries.filter((one) => one.turnsFinal).map(formatTransactionKey))
  const changes = applied.map(({ claim, applied: payments }) => {
    const turnsFinal = final.has(formatTransactionKey(claim))
    return { claim, changes: payments?.changes ?? [], turnsFinal, drafts: [] }
  })
  const ends = applied.map(({ claim, call, row, applied: payments }) => ({
    claim,
    end: classifyAnswer(call, row.newer, payments),
  }))
  const [findings, , ended, objects] = await pipeline(
    recordFindings(tx, applied),
    writeSummaries(tx, ctx.config, summaries),
    endClaims(tx, ctx.config, ends),
    readCommittedObjects(tx, changes),
  )
  const abandoned = ends.flatMap(({ claim }, index) =>
    ended[index]?.next === 'abandon' ? [claim] : [],
  )
  await recordCommittedEvents(ctx, tx, changes, objects, { found: findings.found, abandoned })
  const commits = new Map<string, AnswerCommit>()
  for (const [index, { claim }] of locked.entries()) {
    if (concernRefunds[index]) commits.set(claim.leaseId, 'needs_own_commit')
  }
  for (const [index, { claim }] of applied.entries()) {
    commits.set(claim.leaseId, ended[index] ?? LOST)
  }
  return { commits: answers.map(({ claim }) => commits.get(claim.leaseId) ?? LOST), findings }
}
