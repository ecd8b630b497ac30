import { describe, expect, it } from 'vitest'
import { createGroup } from '../src/group.ts'
import { waitUntil } from './support/wait-until.ts'

/** Runs that end when the test says so. */
function holdRuns() {
  const runs: { items: readonly number[]; end(): void }[] = []
  const run = (items: readonly number[]) =>
    new Promise<PromiseSettledResult<string>[]>((resolve) => {
      const end = () =>
        resolve(items.map((item) => ({ status: 'fulfilled', value: `did ${item}` })))
      runs.push({ items, end })
    })
  const took = () => runs.map(({ items }) => items)
  return { run, runs, took }
}

const turn = () => new Promise((resolve) => setImmediate(resolve))

describe('a group', () => {
  it('runs with the turn of the event loop when idle, and what comes meanwhile shares the next run', async () => {
    const { run, runs, took } = holdRuns()
    const group = createGroup<number, string>(10)
    const first = [1, 2].map((item) => group.add(item, run))
    await turn()
    expect(took()).toEqual([[1, 2]])
    const next = [3, 4].map((item) => group.add(item, run))
    await turn()
    expect(group.countWaiting()).toBe(2)
    runs[0]?.end()
    expect(await Promise.all(first)).toEqual(['did 1', 'did 2'])
    await turn()
    expect(took()).toEqual([
      [1, 2],
      [3, 4],
    ])
    runs[1]?.end()
    expect(await Promise.all(next)).toEqual(['did 3', 'did 4'])
    const again = group.add(5, run)
    await turn()
    expect(took().at(-1)).toEqual([5])
    runs[2]?.end()
    expect(await again).toBe('did 5')
  })

  it('takes no more at once than it may', async () => {
    const { run, runs, took } = holdRuns()
    const group = createGroup<number, string>(2)
    const results = [1, 2, 3, 4].map((item) => group.add(item, run))
    for (const at of [0, 1]) {
      await turn()
      runs[at]?.end()
    }
    expect(took()).toEqual([
      [1, 2],
      [3, 4],
    ])
    await Promise.all(results)
  })

  it('gives up on what no run took in time, in order, and on what was taken later than that', async () => {
    const { run, runs, took } = holdRuns()
    const givenUp: [number, boolean][] = []
    const group = createGroup<number, string>(1, undefined, {
      untakenMs: 20,
      takenMs: 200,
      giveUp(item, taken) {
        givenUp.push([item, taken])
        return new Error(`gave up ${item}`)
      },
    })
    const results = await Promise.allSettled([1, 2, 3].map((item) => group.add(item, run)))
    expect(results.map((one) => one.status === 'rejected' && one.reason.message)).toEqual([
      'gave up 1',
      'gave up 2',
      'gave up 3',
    ])
    expect(givenUp).toEqual([
      [2, false],
      [3, false],
      [1, true],
    ])
    expect(group.countWaiting()).toBe(0)
    const next = group.add(4, run)
    runs[0]?.end()
    await waitUntil(() => runs.length === 2, { what: 'the run of what came last' })
    runs[1]?.end()
    expect(await next).toBe('did 4')
    expect(took()).toEqual([[1], [4]])
  })

  it('waits no longer for a slow run than it has patience, and runs four at most beside each other', async () => {
    const { run, runs, took } = holdRuns()
    const group = createGroup<number, string>(1, 5)
    const results = [1, 2, 3, 4, 5].map((item) => group.add(item, run))
    await waitUntil(() => runs.length === 4, { what: 'four runs beside each other' })
    runs[2]?.end()
    expect(await results[2]).toBe('did 3')
    await waitUntil(() => runs.length === 5, { what: 'the fifth' })
    expect(took()).toEqual([[1], [2], [3], [4], [5]])
    for (const one of runs) one.end()
    expect(await Promise.all(results)).toHaveLength(5)
  })

  it('gives each its own result, and all of them the trouble of their run', async () => {
    const group = createGroup<number, number>(10)
    const down = () => Promise.reject(new Error('down'))
    await Promise.all([1, 2].map((item) => expect(group.add(item, down)).rejects.toThrow('down')))
    const settled = await Promise.allSettled([
      group.add(2, async (items) =>
        items.map((item) =>
          item % 2 ? { status: 'rejected', reason: item } : { status: 'fulfilled', value: item },
        ),
      ),
      group.add(3, () => Promise.resolve([])),
    ])
    expect(
      settled.map((one) => (one.status === 'fulfilled' ? one.value : String(one.reason))),
    ).toEqual([2, '3'])
    await expect(group.add(4, () => Promise.resolve([]))).rejects.toThrow('forgot')
  })

  it('is drained when everything added has its result, also what came while it drained', async () => {
    const { run, runs } = holdRuns()
    const group = createGroup<number, string>(1)
    let drained = false
    const results = [group.add(1, run), group.add(2, run)]
    const drain = group.drain().then(() => {
      drained = true
    })
    runs[0]?.end()
    await turn()
    expect(drained).toBe(false)
    runs[1]?.end()
    await drain
    expect(await Promise.all(results)).toEqual(['did 1', 'did 2'])
  })
})
