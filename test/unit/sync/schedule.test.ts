import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type Progress, type QueryEnd, scheduleNext } from '../../../src/sync/schedule.ts'

const settings = {
  SYNC_BACKOFF_MS: 1000,
  SYNC_BACKOFF_MAX_MS: 60_000,
  SYNC_MAX_ATTEMPTS: 30,
  SYNC_REPOLL_MS: 5000,
  SYNC_REPOLL_MAX_MS: 80_000,
  SYNC_REPOLL_FOR_MS: 1_000_000,
}
const START: Progress = { attempts: 0, polls: 0, sinceRequestedMs: 0, unconfirmed: false }

const count = fc.integer({ min: 0, max: 1_000_000 })
const progress: fc.Arbitrary<Progress> = fc.record({
  attempts: count,
  polls: count,
  sinceRequestedMs: fc.double({ min: 0, max: 1e12, noNaN: true }),
  unconfirmed: fc.constant(false),
})
const reason = fc.string()
const end: fc.Arbitrary<QueryEnd> = fc.oneof(
  fc.constantFrom<QueryEnd>({ kind: 'final' }, { kind: 'superseded' }),
  fc.record({ kind: fc.constantFrom('open' as const, 'failed' as const), reason }),
)

it('only a final transaction is idle; any other is queried again or abandoned', () => {
  fc.assert(
    fc.property(end, progress, (ended, before) => {
      const { kind } = scheduleNext(ended, before, settings)
      expect(kind === 'idle').toBe(ended.kind === 'final')
    }),
  )
})

it('a final answer resets failures, polls and the last error, however long it took', () => {
  fc.assert(
    fc.property(progress, (before) => {
      expect(scheduleNext({ kind: 'final' }, before, settings)).toEqual({
        kind: 'idle',
        attempts: 0,
        polls: 0,
        lastError: null,
      })
    }),
  )
})

describe('a failure', () => {
  const failed = { kind: 'failed' as const, reason: 'HTTP status 500' }

  it('is counted, keeps the polls, and sets the last error', () => {
    expect(scheduleNext(failed, { ...START, attempts: 4, polls: 7 }, settings)).toMatchObject({
      kind: 'query_later',
      attempts: 5,
      polls: 7,
      lastError: 'HTTP status 500',
    })
  })

  it('is retried within its backoff', () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 28 }), (attempts) => {
        const next = scheduleNext(failed, { ...START, attempts }, settings)
        const inMs = next.kind === 'query_later' ? next.inMs : Number.NaN
        expect(inMs).toBeGreaterThanOrEqual(0)
        expect(inMs).toBeLessThanOrEqual(Math.min(60_000, 1000 * 2 ** attempts))
      }),
    )
  })

  it('is the last one exactly at SYNC_MAX_ATTEMPTS', () => {
    const apart = fc.integer({ min: -3, max: 3 })
    fc.assert(
      fc.property(progress, fc.integer({ min: 4, max: 100 }), apart, (before, max, past) => {
        const limited = { ...settings, SYNC_MAX_ATTEMPTS: max }
        const next = scheduleNext(failed, { ...before, attempts: max - 1 + past }, limited)
        expect(next.kind).toBe(past >= 0 ? 'abandon' : 'query_later')
        expect(next.lastError).toBe('HTTP status 500')
      }),
    )
  })

  it('is never the last one because of time', () => {
    const next = scheduleNext(failed, { ...START, sinceRequestedMs: 1e12 }, settings)
    expect(next.kind).toBe('query_later')
  })
})

describe('an open answer', () => {
  const open = { kind: 'open' as const, reason: 'pending, not final' }

  it('is polled at doubling intervals, without jitter', () => {
    const waits = [0, 1, 2, 3, 4, 5].map((polls) =>
      scheduleNext(open, { ...START, polls }, settings),
    )
    expect(waits).toMatchObject(
      [5000, 10_000, 20_000, 40_000, 80_000, 80_000].map((inMs) => ({ kind: 'query_later', inMs })),
    )
  })

  it('ends a row of failures: the gateway answered', () => {
    expect(scheduleNext(open, { ...START, attempts: 29, polls: 2 }, settings)).toMatchObject({
      attempts: 0,
      polls: 3,
      lastError: null,
    })
  })

  it('is abandoned once it has not been requested for SYNC_REPOLL_FOR_MS, and not before', () => {
    fc.assert(
      fc.property(progress, (before) => {
        const next = scheduleNext(open, before, settings)
        expect(next.kind).toBe(before.sinceRequestedMs >= 1_000_000 ? 'abandon' : 'query_later')
      }),
    )
    const last = scheduleNext(open, { ...START, sinceRequestedMs: 1_000_000 }, settings)
    expect(last.lastError).toBe('still open: pending, not final')
  })
})

it('an unconfirmed transaction is never abandoned', () => {
  fc.assert(
    fc.property(end, progress, (ended, before) => {
      const next = scheduleNext(ended, { ...before, unconfirmed: true }, settings)
      expect(next.kind).not.toBe('abandon')
    }),
  )
})

it('a superseded answer is queried again at once and counts neither as failure nor as poll', () => {
  fc.assert(
    fc.property(progress, (before) => {
      expect(scheduleNext({ kind: 'superseded' }, before, settings)).toEqual({
        kind: 'query_now',
        attempts: before.attempts,
        polls: before.polls,
        lastError: null,
      })
    }),
  )
})
