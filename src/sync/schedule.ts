import { backoff, repoll } from '../backoff.ts'
import type { Config } from '../config.ts'

/** How a query ended, as far as the schedule cares. */
export type QueryEnd =
  | { kind: 'final' }
  /** A valid answer that leaves something open. */
  | { kind: 'open'; why: string }
  | { kind: 'failed'; why: string }
  /** An answer to a later question is stored already: this one is dropped, and the question asked anew. */
  | { kind: 'overtaken' }

export type Progress = {
  /** Failures in a row before this query. */
  attempts: number
  /** Open answers in a row before this query. */
  polls: number
  /** Since the last notification or request to sync (ms). */
  askedForMs: number
}

/** What happens next to the transaction; `inMs` from now, `at once` but not closer than a burst's gap. */
export type NextStep = {
  attempts: number
  polls: number
  lastError: string | null
} & ({ kind: 'rest' } | { kind: 'at once' } | { kind: 'again'; inMs: number } | { kind: 'abandon' })

type SyncSettings = Pick<
  Config,
  | 'SYNC_BACKOFF_MS'
  | 'SYNC_BACKOFF_MAX_MS'
  | 'SYNC_MAX_ATTEMPTS'
  | 'SYNC_REPOLL_MS'
  | 'SYNC_REPOLL_MAX_MS'
  | 'SYNC_REPOLL_FOR_MS'
>

/**
 * Decides when to ask again: never for what is final, on the poll schedule for what is open, with
 * backoff after a failure. What goes on for too long is abandoned, never forgotten.
 */
export function scheduleNext(
  end: QueryEnd,
  { attempts, polls, askedForMs }: Progress,
  settings: SyncSettings,
): NextStep {
  if (end.kind === 'final') return { kind: 'rest', attempts: 0, polls: 0, lastError: null }
  if (end.kind === 'overtaken') return { kind: 'at once', attempts, polls, lastError: null }
  if (end.kind === 'open') {
    const step = { attempts: 0, polls: polls + 1 }
    if (askedForMs >= settings.SYNC_REPOLL_FOR_MS) {
      return { ...step, kind: 'abandon', lastError: `still open: ${end.why}` }
    }
    const limits = { base: settings.SYNC_REPOLL_MS, max: settings.SYNC_REPOLL_MAX_MS }
    return { ...step, kind: 'again', inMs: repoll(polls + 1, limits), lastError: null }
  }
  const step = { attempts: attempts + 1, polls, lastError: end.why }
  if (step.attempts >= settings.SYNC_MAX_ATTEMPTS) return { ...step, kind: 'abandon' }
  const limits = { base: settings.SYNC_BACKOFF_MS, max: settings.SYNC_BACKOFF_MAX_MS }
  return { ...step, kind: 'again', inMs: backoff(step.attempts, limits) }
}
