import { logDiscrepancies } from '../discrepancies/store.ts'
import { sendAttempt } from '../refunds/attempt.ts'
import { commitAnswer } from './commit.ts'
import { recordRefundAnswer } from './record-refund-answer.ts'
import type { Claim, ClaimEnd, QueryAnswer, SyncContext } from './types.ts'

/**
 * Syncs a claimed transaction with the gateway in five steps:
 *
 * 1. query the gateway;
 * 2. apply its answer to the payments;
 * 3. reconcile the refunds with the answer, in the same commit;
 * 4. send the refund that step 3 prepared, if any;
 * 5. record the answer to the refund, in a second commit.
 *
 * The lease fences both commits: a worker that has lost it writes nothing, except the answer to a refund, which is
 * evidence. No database transaction is open during steps 1 and 4.
 * @param onAnswer called between steps 1 and 2
 * @returns undefined if the query was not sent or was cut short; the caller then releases the claim
 * @throws database errors, after which the transaction is due again when the lease ends
 */
export async function syncTransaction(
  ctx: SyncContext,
  claim: Claim,
  onAnswer: () => void,
): Promise<ClaimEnd | undefined> {
  const answer = await queryGateway(ctx, claim) // 1
  if (!answer) return undefined
  onAnswer()
  const committed = await ctx.tracing.run(planCommit, () => commitAnswer(ctx, answer)) // 2, 3
  const { end, attempt, queryEnd, found } = committed
  // Logged in the trace of this claim, because others may have shared the commit.
  logDiscrepancies(ctx, found)
  if (!attempt) return end
  const sent = await sendAttempt(attempt, ctx.lifecycle.givingUp) // 4
  const facts = { merchantCode: claim.merchantCode, refundId: attempt.refundId }
  ctx.log.info({ ...facts, outcome: sent.call.outcome.kind }, 'refund sent')
  return await ctx.tracing.run(planCommit, () => recordRefundAnswer(ctx, claim, sent, queryEnd)) // 5
}

const planCommit = () => ({ name: 'commit answer', kind: 'internal' as const })

/** Returns undefined if the account's calls are paused, or the process stopped during the call. */
async function queryGateway(ctx: SyncContext, claim: Claim): Promise<QueryAnswer | undefined> {
  const began = performance.now()
  const call = await ctx.gateway.queryPayments(claim, ctx.lifecycle.givingUp)
  const { kind } = call.outcome
  if ('paused' in call.outcome || (ctx.lifecycle.givingUp.aborted && kind !== 'answered'))
    return undefined
  ctx.queryMs.set(claim.merchantCode, performance.now() - began)
  return { claim, call, sentAfterMs: began - claim.knownAt }
}
