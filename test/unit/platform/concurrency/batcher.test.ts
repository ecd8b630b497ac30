import { describe, expect, it, vi } from 'vitest'
import { createBatcher } from '../../../../src/platform/concurrency/batcher.ts'
import { waitUntil } from '../../../support/wait-until.ts'

/** Longer than any run here. */
const SLOW_MS = 60_000

/** Runs that the test ends. */
function holdRuns() {
  const runs: { items: readonly number[]; end(): void }[] = []
  const run = (items: readonly number[]) =>
    new Promise<PromiseSettledResult<string>[]>((resolve) => {
      const end = () =>
        resolve(items.map((item) => ({ status: 'fulfilled', value: `did ${item}` })))
      runs.push({ items, end })
    })
  const batches = () => runs.map(({ items }) => items)
  return { run, runs, batches }
}

const turn = () => new Promise((resolve) => setImmediate(resolve))

describe('a batcher', () => {
  it('starts with the turn of the event loop when idle, and items added meanwhile share the next run', async () => {
    const { run, runs, batches } = holdRuns()
    const batcher = createBatcher<number, string>(10, SLOW_MS)
    const first = [1, 2].map((item) => batcher.add(item, run))
    await turn()
    expect(batches()).toEqual([[1, 2]])
    const next = [3, 4].map((item) => batcher.add(item, run))
    await turn()
    expect(batcher.countQueued()).toBe(2)
    runs[0]?.end()
    expect(await Promise.all(first)).toEqual(['did 1', 'did 2'])
    await turn()
    expect(batches()).toEqual([
      [1, 2],
      [3, 4],
    ])
    runs[1]?.end()
    expect(await Promise.all(next)).toEqual(['did 3', 'did 4'])
    const again = batcher.add(5, run)
    await turn()
    expect(batches().at(-1)).toEqual([5])
    runs[2]?.end()
    expect(await again).toBe('did 5')
  })

  it('runs batches of at most the maximum size', async () => {
    const { run, runs, batches } = holdRuns()
    const batcher = createBatcher<number, string>(2, SLOW_MS)
    const results = [1, 2, 3, 4].map((item) => batcher.add(item, run))
    for (const at of [0, 1]) {
      await turn()
      runs[at]?.end()
    }
    expect(batches()).toEqual([
      [1, 2],
      [3, 4],
    ])
    await Promise.all(results)
  })

  it('rejects items whose run did not start in time, in order, and later those whose run did not end in time', async () => {
    const { run, runs, batches } = holdRuns()
    const timedOut: [number, boolean][] = []
    const batcher = createBatcher<number, string>(1, SLOW_MS, {
      queueTimeoutMs: 20,
      runTimeoutMs: 200,
      onTimeout(item, started) {
        timedOut.push([item, started])
        return new Error(`${item} timed out`)
      },
    })
    const results = await Promise.allSettled([1, 2, 3].map((item) => batcher.add(item, run)))
    expect(results.map((result) => result.status === 'rejected' && result.reason.message)).toEqual([
      '1 timed out',
      '2 timed out',
      '3 timed out',
    ])
    expect(timedOut).toEqual([
      [2, false],
      [3, false],
      [1, true],
    ])
    expect(batcher.countQueued()).toBe(0)
    const next = batcher.add(4, run)
    runs[0]?.end()
    await waitUntil(() => runs.length === 2, { what: 'the run of the last item' })
    runs[1]?.end()
    expect(await next).toBe('did 4')
    expect(batches()).toEqual([[1], [4]])
  })

  it('a slow run does not block the next one, and at most four overlap', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    try {
      const { run, runs, batches } = holdRuns()
      const batcher = createBatcher<number, string>(1, 5)
      const results = [1, 2, 3, 4, 5].map((item) => batcher.add(item, run))
      await turn()
      vi.advanceTimersByTime(1_000)
      expect(batches()).toEqual([[1], [2], [3], [4]])
      runs[2]?.end()
      expect(await results[2]).toBe('did 3')
      await turn()
      expect(batches()).toEqual([[1], [2], [3], [4], [5]])
      for (const { end } of runs) end()
      expect(await Promise.all(results)).toHaveLength(5)
    } finally {
      vi.useRealTimers()
    }
  })

  it('gives each item its own result, and an error of the run to all of them', async () => {
    const batcher = createBatcher<number, number>(10, SLOW_MS)
    const down = () => Promise.reject(new Error('down'))
    await Promise.all([1, 2].map((item) => expect(batcher.add(item, down)).rejects.toThrow('down')))
    const settled = await Promise.allSettled([
      batcher.add(2, async (items) =>
        items.map((item) =>
          item % 2 ? { status: 'rejected', reason: item } : { status: 'fulfilled', value: item },
        ),
      ),
      batcher.add(3, () => Promise.resolve([])),
    ])
    expect(
      settled.map((result) =>
        result.status === 'fulfilled' ? result.value : String(result.reason),
      ),
    ).toEqual([2, '3'])
    await expect(batcher.add(4, () => Promise.resolve([]))).rejects.toThrow('no result')
  })

  it('is drained when every item added has its result', async () => {
    const { run, runs } = holdRuns()
    const batcher = createBatcher<number, string>(1, SLOW_MS)
    let drained = false
    const results = [batcher.add(1, run), batcher.add(2, run)]
    const drain = batcher.drain().then(() => {
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
