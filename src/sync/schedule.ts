import type { Config } from '../config/config.ts'
import { backoff, repoll } from '../platform/concurrency/timing.ts'

/** How a query ended. Readers are shown a `reason` as `sync.lastError`. */
export type QueryEnd =
  | ({ kind: 'final' } & AskAgain)
  /** A valid answer; `lastError` is set if it has no list of payments. */
  | ({ kind: 'open'; reason: string; lastError?: string } & AskAgain)
  | { kind: 'failed'; reason: string }
  /** The answer to a later query is already stored: this one is dropped, and the query is repeated. */
  | { kind: 'superseded' }

/** After how long (ms) another answer may confirm this one, or is the last that may show a refund made elsewhere. */
type AskAgain = { askAgainInMs?: number | undefined }

export type Progress = {
  /** Failures in a row before this query. */
  attempts: number
  /** Open answers in a row before this query. */
  polls: number
  /** Since the last notification or request to sync (ms). */
  sinceRequestedMs: number
  /** The gateway does not know the transaction; `forgetUnconfirmed` ends its queries. */
  unconfirmed: boolean
}

/** `idle`: no query until something requests one; `query_now`: as soon as the gap of a burst allows. */
export type NextStep = { attempts: number; polls: number; lastError: string | null } & (
  | { kind: 'idle' }
  | { kind: 'query_now' }
  | { kind: 'query_later'; inMs: number }
  | { kind: 'abandon' }
)

type SyncSettings = Pick<
  Config,
  `SYNC_BACKOFF_${'' | 'MAX_'}MS` | `SYNC_REPOLL_${'' | 'MAX_' | 'FOR_'}MS` | 'SYNC_MAX_ATTEMPTS'
>

/**
 * Schedules the next query: none for a final transaction, by the poll schedule for an open one, with backoff after
 * a failure. Abandons an open transaction that nothing has requested for `SYNC_REPOLL_FOR_MS`, and any transaction
 * after `SYNC_MAX_ATTEMPTS` failures in a row, but never an unconfirmed one or one with `askAgainInMs`.
 */
export function scheduleNext(end: QueryEnd, progress: Progress, settings: SyncSettings): NextStep {
  const step = scheduleByEnd(end, progress, settings)
  const againInMs = 'askAgainInMs' in end ? end.askAgainInMs : undefined
  if (againInMs === undefined) return step
  const { attempts, polls } = step
  const inMs = step.kind === 'query_later' ? Math.min(step.inMs, againInMs) : againInMs
  const lastError = step.kind === 'abandon' ? null : step.lastError
  return { kind: 'query_later', attempts, polls, inMs, lastError }
}

function scheduleByEnd(
  end: QueryEnd,
  { attempts, polls, sinceRequestedMs, unconfirmed }: Progress,
  settings: SyncSettings,
): NextStep {
  if (end.kind === 'final') return { kind: 'idle', attempts: 0, polls: 0, lastError: null }
  if (end.kind === 'superseded') return { kind: 'query_now', attempts, polls, lastError: null }
  if (end.kind === 'open') {
    const step = { attempts: 0, polls: polls + 1 }
    if (sinceRequestedMs >= settings.SYNC_REPOLL_FOR_MS && !unconfirmed) {
      return { ...step, kind: 'abandon', lastError: `still open: ${end.reason}` }
    }
    const limits = { base: settings.SYNC_REPOLL_MS, max: settings.SYNC_REPOLL_MAX_MS }
    const inMs = repoll(step.polls, limits)
    return { ...step, kind: 'query_later', inMs, lastError: end.lastError ?? null }
  }
  const step = { attempts: attempts + 1, polls, lastError: end.reason }
  if (step.attempts >= settings.SYNC_MAX_ATTEMPTS && !unconfirmed)
    return { ...step, kind: 'abandon' }
  const limits = { base: settings.SYNC_BACKOFF_MS, max: settings.SYNC_BACKOFF_MAX_MS }
  return { ...step, kind: 'query_later', inMs: backoff(step.attempts, limits) }
}
