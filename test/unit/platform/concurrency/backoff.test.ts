import fc from 'fast-check'
import { expect, it, onTestFinished, vi } from 'vitest'
import { backoff, repoll, startTimer } from '../../../../src/platform/concurrency/timing.ts'

const failures = fc.integer({ min: 1, max: 1_000_000 })
const limits = fc
  .record({ base: fc.integer({ min: 1, max: 1e9 }), factor: fc.integer({ min: 1, max: 1e6 }) })
  .map(({ base, factor }) => ({ base, max: base * factor }))
const dice = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true })

const highest = () => 1 - Number.EPSILON
const lowest = () => 0

it('full jitter: any wait from 0 to the doubled base, never above the cap', () => {
  fc.assert(
    fc.property(failures, limits, dice, (n, { base, max }, random) => {
      const cap = Math.min(max, base * 2 ** (n - 1))
      const wait = backoff(n, { base, max }, () => random)
      expect(wait).toBeGreaterThanOrEqual(0)
      expect(wait).toBeLessThanOrEqual(cap)
      expect(backoff(n, { base, max }, lowest)).toBe(0)
      expect(backoff(n, { base, max }, highest)).toBeCloseTo(cap, -1)
    }),
  )
})

it('a million failures in a row neither overflow nor lose the cap', () => {
  fc.assert(
    fc.property(fc.integer({ min: 50, max: 1_000_000 }), limits, (n, given) => {
      const wait = backoff(n, given, highest)
      expect(Number.isSafeInteger(wait)).toBe(true)
      expect(repoll(n, given)).toBe(given.max)
    }),
  )
})

it('the dice spread the waits over the whole range', () => {
  const waits = Array.from({ length: 1000 }, () => backoff(11, { base: 1, max: 1000 }))
  expect(waits.filter((wait) => wait < 250).length).toBeGreaterThan(150)
  expect(waits.filter((wait) => wait > 750).length).toBeGreaterThan(150)
})

it('polls wait the doubled base without dice, at most the cap', () => {
  fc.assert(
    fc.property(failures, limits, (n, { base, max }) => {
      expect(repoll(n, { base, max })).toBe(Math.min(max, base * 2 ** (n - 1)))
    }),
  )
})

it.each([
  ['a time that passes while the machine is paused is counted by the other clock', 61_000, 0],
  ['a time runs by the monotonic clock where the other one is set back', -3_600_000, 60_000],
])('%s', (_, jumpMs, most) => {
  vi.useFakeTimers({ toFake: ['Date'] })
  onTestFinished(() => void vi.useRealTimers())
  const leftMs = startTimer(60_000)
  vi.setSystemTime(Date.now() + jumpMs)
  expect(leftMs()).toBeLessThanOrEqual(most)
})
