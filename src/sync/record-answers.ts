import { gatewayCalls } from '../db/schema.ts'
import type { RecordedDiscrepancy, ResolvedDiscrepancy } from '../discrepancies/kinds.ts'
import {
  logDiscrepancies,
  recordDiscrepancies,
  resolveDiscrepancies,
} from '../discrepancies/store.ts'
import { type PaymentsToWrite, writePayments } from '../payments/apply-payments.ts'
import { pickColumns, rowSet } from '../platform/postgres/row-set.ts'
import { pipeline } from '../platform/postgres/transaction.ts'
import type { Tx } from '../platform/postgres/types.ts'
import type { AppliedAnswer } from './apply-answers.ts'
import type { SyncContext } from './context.ts'
import { findDisagreements } from './find-disagreements.ts'
import type { ClaimedRow, QueryAnswer } from './types.ts'

/**
 * Records answers in one round trip: the queries as evidence, the payments as they are listed, and the discrepancies.
 * @returns the discrepancies recorded for the first time
 * @throws PaymentElsewhereError
 */
export async function recordAnswers(
  tx: Tx,
  answers: readonly AppliedAnswer[],
): Promise<RecordedDiscrepancy[]> {
  const [, , found] = await pipeline(
    recordCalls(tx, answers),
    writePayments(tx, listWritten(answers)),
    recordFindings(tx, answers),
  )
  return found
}

/** The payments that answers change. */
export function listWritten(answers: readonly AppliedAnswer[]): PaymentsToWrite[] {
  return answers.flatMap(({ claim: key, snapshot, applied }) =>
    snapshot && applied ? [{ key, snapshot, applied }] : [],
  )
}

const COLUMNS = {
  ...pickColumns(
    gatewayCalls,
    'merchantCode',
    'transactionId',
    'command',
    'bodyHmac',
    'bodyKeyId',
    'sentAt',
    'durationMs',
    'outcome',
    'httpStatus',
    'code',
    'message',
    'received',
  ),
  id: 'bigint',
  // As text: the members of the answer are kept as the gateway wrote them.
  answer: 'text',
}

const CODES = { answered: '0', unavailable: null, unknown: null }

/** Records queries as evidence, whatever their outcome, under the ids that `lockClaimed` reserved. */
async function recordCalls(
  tx: Tx,
  calls: readonly (Pick<QueryAnswer, 'claim' | 'call'> & { row: ClaimedRow })[],
): Promise<void> {
  if (calls.length === 0) return
  const rows = calls.map(({ claim, call: { outcome, record }, row }) => ({
    ...claim,
    ...record,
    id: row.callId,
    sentAt: row.asOf,
    outcome: outcome.kind,
    code: outcome.kind === 'rejected' ? outcome.code : CODES[outcome.kind],
    message: 'message' in outcome ? outcome.message : outcome.reason,
    answer: outcome.kind === 'answered' ? outcome.value.json : null,
    bodyHmac: `\\x${record.bodyHmac.value.toString('hex')}`,
    bodyKeyId: record.bodyHmac.keyId,
  }))
  await tx`
    insert into gateway_calls (id, merchant_code, transaction_id, command, body_hmac, body_key_id,
      sent_at, duration_ms, outcome, http_status, code, message, answer, received)
    select id, merchant_code, transaction_id, command, body_hmac, body_key_id, sent_at,
      duration_ms, outcome, http_status, code, message, answer::jsonb, received
    from ${rowSet(tx, 'c', COLUMNS, rows)}`
}

/**
 * Records the discrepancies that the applied answers show, and resolves those that are over. Runs no statement when
 * there is nothing to record.
 */
async function recordFindings(
  tx: Tx,
  answers: readonly AppliedAnswer[],
): Promise<RecordedDiscrepancy[]> {
  const applied = answers.flatMap(({ applied, ...one }) => (applied ? [{ ...one, applied }] : []))
  const judged = applied.map(findDisagreements)
  const resolved: ResolvedDiscrepancy[] = judged.flatMap((one) => one.resolved)
  // Resolved first: what is found again must end up open.
  const [, found] = await pipeline(
    resolveDiscrepancies(tx, resolved),
    recordDiscrepancies(
      tx,
      judged.flatMap((one) => one.found),
    ),
  )
  return found
}

/** Logs and counts committed findings, each in the trace of its own transaction. */
export function logFindings(
  ctx: Pick<SyncContext, 'log' | 'metrics'>,
  found: readonly RecordedDiscrepancy[],
  answers: readonly QueryAnswer[],
): void {
  for (const one of found) {
    const own = answers.find(
      ({ claim }) =>
        claim.transactionId === one.transactionId && claim.merchantCode === one.merchantCode,
    )
    const resume = own?.resume ?? ((log) => log())
    resume(() => logDiscrepancies(ctx, [one]))
  }
}
