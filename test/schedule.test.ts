import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type Progress, type QueryEnd, scheduleNext } from '../src/sync/schedule.ts'

const settings = {
  SYNC_BACKOFF_MS: 1000,
  SYNC_BACKOFF_MAX_MS: 60_000,
  SYNC_MAX_ATTEMPTS: 30,
  SYNC_REPOLL_MS: 5000,
  SYNC_REPOLL_MAX_MS: 80_000,
  SYNC_REPOLL_FOR_MS: 1_000_000,
}
const START: Progress = { attempts: 0, polls: 0, askedForMs: 0 }

const count = fc.integer({ min: 0, max: 1_000_000 })
const progress: fc.Arbitrary<Progress> = fc.record({
  attempts: count,
  polls: count,
  askedForMs: fc.double({ min: 0, max: 1e12, noNaN: true }),
})
const why = fc.string()
const end: fc.Arbitrary<QueryEnd> = fc.oneof(
  fc.constantFrom<QueryEnd>({ kind: 'final' }, { kind: 'overtaken' }),
  fc.record({ kind: fc.constantFrom('open' as const, 'failed' as const), why }),
)

it('whatever happened, only what is final rests: the rest is asked again or abandoned', () => {
  fc.assert(
    fc.property(end, progress, (ended, so) => {
      const { kind } = scheduleNext(ended, so, settings)
      expect(kind === 'rest').toBe(ended.kind === 'final')
    }),
  )
})

it('what is final forgets failures, polls and the last error, however long it took', () => {
  fc.assert(
    fc.property(progress, (so) => {
      expect(scheduleNext({ kind: 'final' }, so, settings)).toEqual({
        kind: 'rest',
        attempts: 0,
        polls: 0,
        lastError: null,
      })
    }),
  )
})

describe('a failure', () => {
  const failed = { kind: 'failed' as const, why: 'HTTP status 500' }

  it('is counted, keeps the polls, and says why', () => {
    expect(scheduleNext(failed, { ...START, attempts: 4, polls: 7 }, settings)).toMatchObject({
      kind: 'again',
      attempts: 5,
      polls: 7,
      lastError: 'HTTP status 500',
    })
  })

  it('is followed by a wait within its backoff', () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 28 }), (attempts) => {
        const next = scheduleNext(failed, { ...START, attempts }, settings)
        const inMs = next.kind === 'again' ? next.inMs : Number.NaN
        expect(inMs).toBeGreaterThanOrEqual(0)
        expect(inMs).toBeLessThanOrEqual(Math.min(60_000, 1000 * 2 ** attempts))
      }),
    )
  })

  it('is the last one exactly at SYNC_MAX_ATTEMPTS', () => {
    fc.assert(
      fc.property(progress, fc.integer({ min: 1, max: 100 }), (so, max) => {
        const next = scheduleNext(failed, so, { ...settings, SYNC_MAX_ATTEMPTS: max })
        expect(next.kind).toBe(so.attempts + 1 >= max ? 'abandon' : 'again')
        expect(next.lastError).toBe('HTTP status 500')
      }),
    )
  })

  it('is never the last one because of time', () => {
    const next = scheduleNext(failed, { ...START, askedForMs: 1e12 }, settings)
    expect(next.kind).toBe('again')
  })
})

describe('an open answer', () => {
  const open = { kind: 'open' as const, why: 'pending, not final' }

  it('is polled at doubling distances, without dice', () => {
    const waits = [0, 1, 2, 3, 4, 5].map((polls) =>
      scheduleNext(open, { ...START, polls }, settings),
    )
    expect(waits).toMatchObject(
      [5000, 10_000, 20_000, 40_000, 80_000, 80_000].map((inMs) => ({ kind: 'again', inMs })),
    )
  })

  it('ends a row of failures: the gateway answered', () => {
    expect(scheduleNext(open, { ...START, attempts: 29, polls: 2 }, settings)).toMatchObject({
      attempts: 0,
      polls: 3,
      lastError: null,
    })
  })

  it('is abandoned once nobody has asked for it since SYNC_REPOLL_FOR_MS, and not before', () => {
    fc.assert(
      fc.property(progress, (so) => {
        const next = scheduleNext(open, so, settings)
        expect(next.kind).toBe(so.askedForMs >= 1_000_000 ? 'abandon' : 'again')
      }),
    )
    const last = scheduleNext(open, { ...START, askedForMs: 1_000_000 }, settings)
    expect(last.lastError).toBe('still open: pending, not final')
  })
})

it('an overtaken answer is asked anew at once and counts neither as failure nor as poll', () => {
  fc.assert(
    fc.property(progress, (so) => {
      expect(scheduleNext({ kind: 'overtaken' }, so, settings)).toEqual({
        kind: 'at once',
        attempts: so.attempts,
        polls: so.polls,
        lastError: null,
      })
    }),
  )
})
