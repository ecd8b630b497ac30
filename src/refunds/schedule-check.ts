import { and, eq, sql } from 'drizzle-orm'
import type { Config } from '../config/config.ts'
import { refunds } from '../db/schema.ts'
import { repoll } from '../platform/concurrency/timing.ts'
import { build } from '../platform/postgres/drizzle.ts'
import type { Tx } from '../platform/postgres/types.ts'
import type { RefundSettings } from './transitions.ts'
import type { RefundDraft, RefundRow } from './types.ts'

/**
 * Whether the refund may be sent again under the same id, provided that a fresh snapshot shows no growth. No
 * gateway remembers request ids for ever: resending stops `REFUND_RESEND_FOR_MS` after the first attempt.
 */
export function mayResend(now: RefundRow, settings: RefundSettings): boolean {
  return (
    settings.GATEWAY_REFUND_DEDUPES &&
    now.status === 'unknown' &&
    now.unanswered &&
    now.failureCode === null &&
    (now.sinceFirstSentMs ?? 0) < settings.REFUND_RESEND_FOR_MS &&
    (now.sinceSentMs ?? 0) >= resendAfter(now, settings)
  )
}

/** How long after the last attempt to send again (ms): doubles with every attempt. */
function resendAfter(now: RefundRow, settings: RefundSettings): number {
  const { REFUND_RESEND_AFTER_MS: base, REFUND_BACKOFF_MAX_MS } = settings
  return repoll(now.attempts, { base, max: Math.max(base, REFUND_BACKOFF_MAX_MS) })
}

/** How long until the next check of a refund that is not over (ms): doubles, but never passes one of its deadlines. */
export function scheduleNextCheck({ now }: RefundDraft, settings: RefundSettings): number {
  const limits = { base: settings.REFUND_BACKOFF_MS, max: settings.REFUND_BACKOFF_MAX_MS }
  const steps = [repoll(now.polls, limits)]
  if (now.failureCode !== null) {
    steps.push(...listConfirmations(now, now.sinceFailureNotifiedMs, settings))
  }
  if (now.status === 'unknown') {
    const sinceSent = now.sinceSentMs ?? 0
    steps.push(settings.REFUND_RESOLVE_FOR_MS - sinceSent)
    if (now.refusedCode !== null && !now.unanswered) {
      steps.push(...listConfirmations(now, now.sinceRefusedMs, settings))
    } else if (settings.GATEWAY_REFUND_DEDUPES) {
      steps.push(resendAfter(now, settings) - sinceSent)
    }
  }
  if (now.status === 'pending') steps.push(settings.REFUND_SEND_WITHIN_MS - now.sinceRequestedMs)
  // Deadlines in the past are ignored; one more millisecond puts the check after the deadline.
  return Math.min(...steps.filter((ms) => ms > 0).map((ms) => Math.ceil(ms) + 1))
}

/** How long until a failure may be confirmed (ms): since the gateway told it, and since an answer shows no growth. */
function listConfirmations(
  { noGrowthSince, sinceNoGrowthMs }: RefundRow,
  sinceToldMs: number | null,
  { REFUND_CONFIRM_FAILED_MS: waitMs }: RefundSettings,
): number[] {
  const sinceShown = noGrowthSince === null ? [] : [waitMs - (sinceNoGrowthMs ?? 0)]
  return [waitMs - (sinceToldMs ?? 0), ...sinceShown]
}

/**
 * Schedules the deletion of a finished refund's receiver. The account number is kept while the outcome may
 * still be revised (`REFUND_CONFIRM_FAILED_MS`).
 */
export async function scheduleReceiverErasure(
  tx: Tx,
  config: Pick<Config, 'REFUND_CONFIRM_FAILED_MS'>,
  { now }: RefundDraft,
): Promise<void> {
  if (now.status === 'needs_review') return
  const ms = config.REFUND_CONFIRM_FAILED_MS
  await build(tx)
    .update(refunds)
    .set({ eraseReceiverAt: sql`now() + ${ms}::float8 * interval '1 millisecond'` })
    .where(and(eq(refunds.merchantCode, now.merchantCode), eq(refunds.refundId, now.refundId)))
}
