import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  createRateLimiter,
  createThrottle,
  type Rate,
} from '../../../../src/platform/concurrency/rate-limiter.ts'

const RATE: Rate = { perMinute: 600, burst: 3 }

/** A limiter whose time the test sets (ms). */
function start(maxKeys?: number) {
  const clock = { at: 10_000 }
  const limiter = createRateLimiter({ now: () => clock.at, ...(maxKeys ? { maxKeys } : {}) })
  return { clock, limiter }
}

describe('a rate', () => {
  it('allows its burst at once, then says how long to wait, and a refusal takes nothing', () => {
    const { clock, limiter } = start()
    const take = () => limiter.take('a', RATE)
    expect([take(), take(), take()].map(({ left }) => left)).toEqual([2, 1, 0])
    expect(take()).toEqual({ ok: false, waitMs: 100, left: 0, wholeInMs: 300 })
    expect(take()).toEqual({ ok: false, waitMs: 100, left: 0, wholeInMs: 300 })
    clock.at += 100
    expect(take()).toEqual({ ok: true, waitMs: 0, left: 0, wholeInMs: 300 })
  })

  it('is one of each key', () => {
    const { limiter } = start()
    limiter.take('a', RATE, 3)
    expect(limiter.take('a', RATE).ok).toBe(false)
    expect(limiter.take('b', RATE)).toEqual({ ok: true, waitMs: 0, left: 2, wholeInMs: 100 })
  })

  it('lets what was used be charged beyond the burst: the key waits until the debt is paid', () => {
    const { clock, limiter } = start()
    limiter.charge('a', RATE, 5)
    expect(limiter.peek('a', RATE)).toEqual({ ok: false, waitMs: 300, left: 0, wholeInMs: 500 })
    clock.at += 300
    expect(limiter.peek('a', RATE)).toMatchObject({ ok: true, waitMs: 0, left: 0 })
  })

  it('allows all of a burst of thousands of odd fractions, after days of running', () => {
    const { clock, limiter } = start()
    clock.at = 1e9 + 0.123
    const rate = { perMinute: 29_999, burst: 29_999 }
    for (let n = 1; n <= rate.burst; n += 1) {
      const { ok, left } = limiter.take('a', rate)
      if (!ok || left !== rate.burst - n) expect.fail(`${n}: ${ok}, ${left}`)
    }
    expect(limiter.take('a', rate).ok).toBe(false)
  })

  it('forgets the key that was silent for longest', () => {
    const { limiter } = start(2)
    for (const key of ['a', 'b', 'a', 'c']) limiter.take(key, RATE, 3)
    expect(['a', 'c', 'b'].map((key) => limiter.peek(key, RATE).ok)).toEqual([false, false, true])
  })
})

type Step = { key: string; passesMs: number; cost: number; call: 'take' | 'peek' | 'charge' }
const step = fc.record<Step>({
  key: fc.constantFrom('a', 'b'),
  passesMs: fc.nat(1_500),
  cost: fc.integer({ min: 1, max: 4 }),
  call: fc.constantFrom('take', 'peek', 'charge'),
})

/** Counts one unit a `gapMs` up to the burst, in whole thousandths. */
function playModel(steps: readonly Step[], gapMs: number, burst: number) {
  const left: Record<string, number> = { a: burst * gapMs, b: burst * gapMs }
  return steps.map(({ key, passesMs, cost, call }) => {
    for (const name of Object.keys(left)) {
      left[name] = Math.min(burst * gapMs, (left[name] ?? 0) + passesMs)
    }
    const had = left[key] ?? 0
    const ok = had >= cost * gapMs
    const rest = ok ? had - cost * gapMs : had
    if (call === 'charge') left[key] = had - cost * gapMs
    if (call === 'take') left[key] = rest
    const waitMs = ok ? 0 : cost * gapMs - had
    const whole = { left: Math.max(0, Math.floor(rest / gapMs)), wholeInMs: burst * gapMs - rest }
    return call === 'charge' ? 'charged' : { ok, waitMs, ...whole }
  })
}

it('counts as a bucket does that a naive model fills and empties, whatever is taken and when', () => {
  const rates = fc.record({
    gapMs: fc.constantFrom(1, 10, 250),
    burst: fc.integer({ min: 1, max: 5 }),
  })
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), rates, (steps, { gapMs, burst }) => {
      const { clock, limiter } = start()
      const rate = { perMinute: 60_000 / gapMs, burst }
      const got = steps.map(({ key, passesMs, cost, call }) => {
        clock.at += passesMs
        return limiter[call](key, rate, cost) ?? 'charged'
      })
      expect(got).toEqual(playModel(steps, gapMs, burst))
    }),
  )
})

describe('a throttle', () => {
  it('lets one of a kind through per interval, with the number left out before it', () => {
    const clock = { at: 10_000 }
    const throttle = createThrottle(1_000, { now: () => clock.at })
    const first = [throttle('a'), throttle('a'), throttle('a')]
    expect(first).toEqual([{ leftOut: 0 }, undefined, undefined])
    expect(throttle('b')).toEqual({ leftOut: 0 })
    clock.at += 1_000
    expect([throttle('a'), throttle('b')]).toEqual([{ leftOut: 2 }, { leftOut: 0 }])
  })

  it('forgets the kind that was silent for longest, with its count', () => {
    const throttle = createThrottle(60_000, { maxKeys: 2 })
    for (const kind of ['a', 'b', 'c']) {
      throttle(kind)
      expect(throttle(kind)).toBeUndefined()
    }
    expect(throttle('a')).toEqual({ leftOut: 0 })
  })
})
