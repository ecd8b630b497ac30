import fc from 'fast-check'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { createSlots, type Release } from '../../../../src/platform/concurrency/slots.ts'

const FOREVER = Number.POSITIVE_INFINITY
afterEach(() => {
  vi.useRealTimers()
})

/** Notes who gets a slot, in order, and gives slots back by holder. */
function start(total: number, perHolder?: number) {
  const slots = createSlots(total, perHolder === undefined ? {} : { perHolder })
  const served: string[] = []
  const releases: { holder: string; release: Release }[] = []
  const keep = (name: string, release: Release | undefined) => {
    if (!release) return
    served.push(name)
    releases.push({ holder: name.charAt(0), release })
  }
  const take = (name: string, maxWaitMs = FOREVER) =>
    slots.take(name.charAt(0), maxWaitMs).then((release) => keep(name, release))
  const leave = async (holder: string) => {
    const index = releases.findIndex((one) => one.holder === holder)
    for (const { release } of releases.splice(index, 1)) release()
    await Promise.resolve().then(() => undefined)
  }
  return { slots, served, take, leave }
}

describe('slots', () => {
  it('are given out up to the total and to what one holder may have, and again after a release', () => {
    const slots = createSlots(3, { perHolder: 2 })
    const [first] = [slots.tryTake('a'), slots.tryTake('a')]
    expect(slots.tryTake('a')).toBeUndefined()
    expect(slots.tryTake('b')).toBeDefined()
    expect(slots.tryTake('c')).toBeUndefined()
    expect([slots.free(), slots.held(), slots.held('a')]).toEqual([0, 3, 2])
    first?.()
    first?.()
    expect([slots.free(), slots.held('a')]).toEqual([1, 1])
    expect(slots.tryTake('c')).toBeDefined()
  })

  it('go to the waiting holder with the fewest, and to one after the other where they have as many', async () => {
    const { slots, served, take, leave } = start(2)
    for (const name of ['a1', 'a2', 'a3', 'a4', 'b1', 'b2', 'c1']) void take(name)
    await Promise.resolve()
    expect(slots.waiting()).toBe(5)
    await leave('a')
    await leave('a')
    await leave('b')
    await leave('c')
    await leave('a')
    expect(served).toEqual(['a1', 'a2', 'b1', 'a3', 'c1', 'b2', 'a4'])
    expect(slots.waiting('a')).toBe(0)
  })

  it('are not waited for longer than a request wants to', async () => {
    vi.useFakeTimers()
    const { slots, served, take, leave } = start(1)
    void take('a1')
    const late = take('b1', 500)
    void take('c1', 501)
    await vi.advanceTimersByTimeAsync(500)
    await late
    expect(slots.waiting('b')).toBe(0)
    await leave('a')
    expect(served).toEqual(['a1', 'c1'])
    await vi.advanceTimersByTimeAsync(10_000)
    expect(slots.held('c')).toBe(1)
  })
})

type Step = { holder: 'a' | 'b' | 'c'; call: 'take' | 'leave' }
const step = fc.record<Step>({
  holder: fc.constantFrom('a', 'b', 'c'),
  call: fc.constantFrom('take', 'leave'),
})

it('are never more than the limits, never idle while somebody may have one, and all come back', async () => {
  const limits = fc.record({
    total: fc.integer({ min: 1, max: 4 }),
    perHolder: fc.integer({ min: 1, max: 3 }),
  })
  await fc.assert(
    fc.asyncProperty(
      fc.array(step, { maxLength: 50 }),
      limits,
      async (steps, { total, perHolder }) => {
        const { slots, served, take, leave } = start(total, perHolder)
        let asked = 0
        let left = 0
        for (const { holder, call } of steps) {
          if (call === 'take') {
            asked += 1
            void take(`${holder}${asked}`)
          } else if (slots.held(holder) > 0) {
            left += 1
            await leave(holder)
          }
          await Promise.resolve()
          expect(slots.held()).toBe(served.length - left)
          expect(slots.held() + slots.waiting()).toBe(asked - left)
          expect(slots.held()).toBeLessThanOrEqual(total)
          for (const name of ['a', 'b', 'c']) {
            expect(slots.held(name)).toBeLessThanOrEqual(perHolder)
            const mayHave = slots.free() > 0 && slots.held(name) < perHolder
            if (mayHave) expect(slots.waiting(name)).toBe(0)
            const own = served
              .filter((one) => one.startsWith(name))
              .map((one) => Number(one.slice(1)))
            expect(own).toEqual(own.toSorted((one, other) => one - other))
          }
        }
      },
    ),
  )
})
