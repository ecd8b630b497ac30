import { describe, expect, it } from 'vitest'
import { createCallPace } from '../../../../src/platform/concurrency/call-pace.ts'

describe('the pace of calls', () => {
  it('estimates how many calls in flight end within a time, for each holder on its own', () => {
    const pace = createCallPace(() => 1_000)
    pace.record('A', 980)
    pace.record('B', 0)
    expect(pace.countEnding('A', 16, 50)).toBe(40)
    expect(pace.countEnding('B', 16, 50)).toBe(0)
    expect(pace.countEnding('C', 16, 50)).toBe(0)
  })

  it('follows calls that become slower, and starts anew when it was forgotten', () => {
    const pace = createCallPace(() => 1_000)
    pace.record('A', 990)
    for (let n = 0; n < 30; n += 1) pace.record('A', 0)
    expect(pace.countEnding('A', 16, 50)).toBe(0)
    pace.forget('A')
    pace.record('A', 990)
    expect(pace.countEnding('A', 16, 50)).toBe(80)
  })
})
