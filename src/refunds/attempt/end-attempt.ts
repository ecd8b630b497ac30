import { and, eq, isNull, sql } from 'drizzle-orm'
import { isLosslessNumber, parse, stringify } from 'lossless-json'
import { refundAttempts } from '../../db/schema.ts'
import { describeCode, explainCode } from '../../gateway/response-codes.ts'
import type { GatewayOutcome } from '../../gateway/types.ts'
import { build } from '../../platform/postgres/drizzle.ts'
import type { Tx } from '../../platform/postgres/types.ts'
import { maskAccount } from '../receiver.ts'
import { isUnsent, NO_FAILURE, sendToReview, transition } from '../transitions.ts'
import type { RefundDraft } from '../types.ts'
import type { Attempt, SentAttempt } from './types.ts'

/**
 * Sends a refund whose attempt is recorded and committed, once. Never rejects. A worker that stalled after
 * recording it sends nothing: its lease may expire during the call, and the next worker would send as well.
 * @param signal cuts the call short when the process stops
 */
export async function sendAttempt(attempt: Attempt, signal: AbortSignal): Promise<SentAttempt> {
  const { prepared, permit } = attempt
  if (performance.now() < permit.sendBefore) {
    return { attempt, call: await prepared.send(signal, permit.breaker) }
  }
  permit.breaker.release()
  const reason = 'the lease would have expired during the call'
  const record = { command: 'REFUND' as const, bodyHmac: prepared.bodyHmac, durationMs: 0 }
  return {
    attempt,
    call: {
      outcome: { kind: 'unavailable', reason },
      record: { ...record, httpStatus: undefined },
    },
  }
}

/**
 * Masks an account number in every text and number of a stored answer.
 * @param json as `src/gateway/format-received.ts` writes it; it stays JSON
 */
export function maskAccountIn(json: string, accountNumber: string): string {
  if (accountNumber === '') return json
  return stringify(maskValue(parse(json), accountNumber)) ?? json
}

function maskValue(value: unknown, accountNumber: string): unknown {
  const mask = (text: string) => text.replaceAll(accountNumber, () => maskAccount(accountNumber))
  if (typeof value === 'string') return mask(value)
  if (isLosslessNumber(value)) {
    return value.value.includes(accountNumber) ? mask(value.value) : value
  }
  if (Array.isArray(value)) return value.map((one) => maskValue(one, accountNumber))
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value).map(([name, one]) => [
      name,
      name === 'omittedBytes' ? one : maskValue(one, accountNumber),
    ]),
  )
}

/**
 * Records the outcome of an attempt and applies it to its refund. The caller holds the lease under which the
 * attempt was made.
 * @throws Error when the attempt is not in progress, which the lease excludes
 */
export async function endAttempt(tx: Tx, draft: RefundDraft, sent: SentAttempt): Promise<void> {
  const { attemptId } = sent.attempt
  const [row] = await build(tx)
    .update(refundAttempts)
    .set(describeOutcome(sent))
    .where(
      and(
        eq(refundAttempts.id, attemptId),
        eq(refundAttempts.merchantCode, draft.now.merchantCode),
      ),
    )
    .returning({ endedAt: sql<string>`clock_timestamp()::text` })
  if (!row || draft.now.status !== 'sending') {
    throw new Error(`attempt ${attemptId} is not in progress`)
  }
  applyOutcome(draft, sent, row.endedAt)
}

/** The columns of an attempt's outcome, with the receiver's account number masked wherever it occurs. */
export function describeOutcome({ attempt: { accountNumber }, call }: SentAttempt) {
  const { record } = call
  const outcome = maskAccountNumber(call.outcome, accountNumber)
  const code = outcome.kind === 'rejected' ? outcome.code : outcome.kind === 'answered' ? '0' : null
  const message = 'reason' in outcome ? outcome.reason : outcome.message
  const { httpStatus = null, durationMs, received: json = null } = record
  const received = json && accountNumber ? maskAccountIn(json, accountNumber) : json
  return { outcome: outcome.kind, httpStatus, code, message, durationMs, received }
}

/** Applies the outcome of the last attempt to its refund. */
export function applyOutcome(
  draft: RefundDraft,
  { attempt: { before, accountNumber }, call }: SentAttempt,
  endedAt: string,
): void {
  const outcome = maskAccountNumber(call.outcome, accountNumber)
  switch (outcome.kind) {
    case 'answered': {
      const cause = { reason: 'the gateway accepted the refund (code 0)' }
      transition(draft, 'accepted', cause, {
        gatewayRefundId: outcome.value ?? null,
        ...NO_FAILURE,
      })
      break
    }
    case 'rejected':
      applyRejection(draft, outcome, endedAt)
      break
    case 'unavailable': {
      const { attempts, firstSentAt, lastSentAt, refundedBefore, unanswered } = before
      const cause = { reason: `not sent: ${outcome.reason}` }
      const restored = { attempts, firstSentAt, lastSentAt, refundedBefore, unanswered }
      transition(draft, before.status, cause, restored)
      // Somebody sent it, if not this attempt.
      if (isUnsent(draft.now) && draft.now.failureCode !== null) {
        const reason = 'its failure was notified, but as far as is known it was not sent'
        sendToReview(draft, 'contradicted', { reason })
      }
      break
    }
    case 'unknown':
      transition(
        draft,
        'unknown',
        { reason: `no valid answer: ${outcome.reason}` },
        { unanswered: true },
      )
  }
}

/** Shorter texts are no account numbers, and may be part of any word. */
const MIN_ACCOUNT_NUMBER = 4

function maskAccountNumber<T>(
  outcome: GatewayOutcome<T>,
  accountNumber: string | undefined,
): GatewayOutcome<T> {
  if (accountNumber === undefined || !('message' in outcome)) return outcome
  if (accountNumber.length < MIN_ACCOUNT_NUMBER) return outcome
  // A function, because a replacement text may contain patterns like $&, which insert what was found.
  const message = outcome.message.replaceAll(accountNumber, () => maskAccount(accountNumber))
  return { ...outcome, message }
}

/** The message of an attempt whose answer was not recorded. */
export const INTERRUPTED = 'interrupted'

/**
 * Ends an attempt whose worker died or lost its lease: the request may have been sent, and no answer was
 * recorded. The caller holds the lease, so no other worker is sending now.
 */
export async function endInterruptedAttempt(tx: Tx, draft: RefundDraft): Promise<void> {
  if (draft.now.status !== 'sending') return
  const reason = 'the attempt was interrupted; the request may have been sent'
  transition(draft, 'unknown', { reason }, { unanswered: true })
  await build(tx)
    .update(refundAttempts)
    .set({ outcome: 'unknown', message: INTERRUPTED })
    .where(
      and(
        eq(refundAttempts.merchantCode, draft.now.merchantCode),
        eq(refundAttempts.refundId, draft.now.refundId),
        isNull(refundAttempts.outcome),
      ),
    )
}

/** Only a code for the first attempt is evidence of a failure, and only after the confirmation window. */
function applyRejection(
  draft: RefundDraft,
  { code, message }: { code: string; message: string },
  refusedAt: string,
): void {
  const reason = `the gateway answered with ${describeCode(code, message)}`
  const isFirst = draft.now.attempts === 1
  transition(
    draft,
    'unknown',
    { reason },
    {
      ...(isFirst ? { refusedCode: code, refusedAt } : {}),
      failureSource: 'gateway',
      failureReason: code,
      failureMessage: explainCode(code, message),
    },
  )
}
