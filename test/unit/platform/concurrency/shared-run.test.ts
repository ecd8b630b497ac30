import { expect, it } from 'vitest'
import { shareRuns } from '../../../../src/platform/concurrency/timing.ts'

/** Counts its runs; each ends when `end` is called. */
function createWork() {
  const ends: ((error?: Error) => void)[] = []
  const run = () =>
    new Promise<number>((resolve, reject) => {
      const nth = ends.length
      ends.push((error) => (error ? reject(error) : resolve(nth)))
    })
  return { run, ends }
}

it('concurrent callers share one run, and its result is reused', async () => {
  const { run, ends } = createWork()
  const read = shareRuns(run, 60_000)
  const asked = [read(), read(), read()]
  expect(ends).toHaveLength(1)
  ends[0]?.()
  expect(await Promise.all(asked)).toEqual([0, 0, 0])
  expect(await read()).toBe(0)
  expect(ends).toHaveLength(1)
})

it('a result that is no longer reused is read anew, by one run', async () => {
  const { run, ends } = createWork()
  const read = shareRuns(run, 0)
  const first = read()
  ends[0]?.()
  await first
  const asked = [read(), read()]
  ends[1]?.()
  expect(await Promise.all(asked)).toEqual([1, 1])
})

it('a failure is shared and reused as a result is, so that a broken database gets no more questions', async () => {
  const { run, ends } = createWork()
  const read = shareRuns(run, 60_000)
  const asked = [read(), read()]
  ends[0]?.(new Error('gone'))
  expect((await Promise.allSettled(asked)).map(({ status }) => status)).toEqual([
    'rejected',
    'rejected',
  ])
  await expect(read()).rejects.toThrow('gone')
  expect(ends).toHaveLength(1)
})
