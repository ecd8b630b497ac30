import { setTimeout } from 'node:timers/promises'
import type { TransactionKey } from '../db/transaction-key.ts'
import { logDiscrepancies } from '../discrepancies/store.ts'
import { backoff } from '../platform/concurrency/timing.ts'
import { CLOCK } from '../platform/postgres/clock.ts'
import { isDatabaseUnavailable, isTransient } from '../platform/postgres/errors.ts'
import { runPipelined } from '../platform/postgres/transaction.ts'
import type { Tx } from '../platform/postgres/types.ts'
import type { SentAttempt } from '../refunds/attempt.ts'
import { recordAttemptResult } from '../refunds/reconcile.ts'
import { makeDue } from '../transactions/due.ts'
import { keepOpenForRefunds, listFacts } from './apply-answers.ts'
import { lockClaimed, lockUnclaimed } from './fence.ts'
import { finishCommit } from './finish-commit.ts'
import type { QueryEnd } from './schedule.ts'
import { type Claim, type ClaimEnd, type CommitItem, LOST, type SyncContext } from './types.ts'

const RETRY_MS = { base: 100, max: 5_000 }

/** The answer has to wait. Thrown, so that nothing of the commit stays: each retry would request another query. */
class AttemptInProgressError extends Error {
  constructor() {
    super('another attempt of the refund is in progress')
  }
}

/**
 * Records the answer to a refund. It is evidence, so it is kept in memory while the database is unavailable, and
 * written even if the lease has ended by then. It is lost only if the process stops or dies before.
 * @throws the error of the database if the process stops, or if waiting cannot help
 */
export async function recordRefundAnswer(
  ctx: SyncContext,
  claim: Claim,
  sent: SentAttempt,
  queryEnd: QueryEnd,
): Promise<ClaimEnd> {
  const { merchantCode } = claim
  const facts = { merchantCode, refundId: sent.attempt.refundId, outcome: sent.call.outcome.kind }
  for (let failures = 1; ; failures += 1) {
    try {
      return await tryRecord(ctx, claim, sent, queryEnd)
    } catch (error) {
      const isBusy = error instanceof AttemptInProgressError
      const mayPass = isBusy || isDatabaseUnavailable(error) || isTransient(error)
      if (!mayPass || ctx.lifecycle.givingUp.aborted) {
        ctx.log.error({ ...facts, err: error }, 'the answer to a refund is lost')
        throw error
      }
      if (failures === 1) {
        ctx.log.warn({ ...facts, err: error }, 'the answer to a refund is kept until it is stored')
      }
    }
    await setTimeout(backoff(failures, RETRY_MS), undefined, {
      signal: ctx.lifecycle.givingUp,
    }).catch(() => {})
  }
}

async function tryRecord(
  ctx: SyncContext,
  claim: Claim,
  sent: SentAttempt,
  queryEnd: QueryEnd,
): Promise<ClaimEnd> {
  const recorded = await runPipelined(ctx.db.sql, {
    open: (tx) => lockClaimed(tx, [{ claim, sentAfterMs: 0 }]),
    work: async (tx, rows) => {
      const row = rows.get(claim.leaseId)
      const refunds = row ? await recordAttemptResult(ctx, tx, claim, sent, true) : 'gone'
      const item: CommitItem =
        row && typeof refunds === 'object'
          ? {
              ...{ key: claim, row, refunds, payments: listFacts(refunds) },
              ended: { claim, end: keepOpenForRefunds(queryEnd, refunds) },
            }
          : await recordLate(ctx, tx, claim, sent)
      const given = Promise.resolve(item.refunds?.found ?? [])
      const { ends, found, last } = await finishCommit(ctx, tx, [item], given)
      return { value: { end: ends[0] ?? LOST, found }, last }
    },
  })
  logDiscrepancies(ctx, recorded.found)
  return recorded.end
}

/**
 * Records the answer after the lease has ended or the payment has moved. Whoever holds the claim by then keeps it. It
 * requests a query, so that an answer that is under way is known not to show what is recorded here.
 * @throws AttemptInProgressError while another attempt of the refund is in progress
 */
async function recordLate(
  ctx: SyncContext,
  tx: Tx,
  { merchantCode }: Claim,
  sent: SentAttempt,
): Promise<CommitItem> {
  const keys = await tx<TransactionKey[]>`
    select merchant_code as "merchantCode", transaction_id as "transactionId" from refunds
    where merchant_code = ${merchantCode} and refund_id = ${sent.attempt.refundId}`
  const [locked] = await lockUnclaimed(tx, keys)
  if (locked) await requestQuery(tx, locked.key)
  const refunds = locked ? await recordAttemptResult(ctx, tx, locked.key, sent, false) : 'gone'
  if (!locked || refunds === 'gone') throw new Error('the row of the refund is lost')
  if (refunds === 'busy') throw new AttemptInProgressError()
  return { ...locked, refunds, payments: listFacts(refunds) }
}

async function requestQuery(tx: Tx, { merchantCode, transactionId }: TransactionKey) {
  await tx`
    update transactions as t set ${makeDue(tx)} from ${tx.unsafe(CLOCK)}
    where t.merchant_code = ${merchantCode} and t.transaction_id = ${transactionId}`
}
