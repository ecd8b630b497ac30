import { expect, it, onTestFinished, vi } from 'vitest'
import { createMetrics } from '../../../../src/metrics.ts'
import {
  startMonitoredLoop,
  startWorkerLoop,
  type WorkerLoopOptions,
  type WorkerRound,
} from '../../../../src/platform/concurrency/worker-loop.ts'
import { keepLog } from '../../../support/sync.ts'
import { waitUntil } from '../../../support/wait-until.ts'

const FOREVER = 2 ** 31 - 1
const NOTHING: WorkerRound = { count: 0, finished: Promise.resolve() }

/** A loop whose rounds the test controls; it sleeps until it is woken. */
function run(begin: WorkerLoopOptions['begin'], idleMs = async () => FOREVER) {
  const stopping = new AbortController()
  const { log, errors } = keepLog()
  let rounds = 0
  const loop = startWorkerLoop({
    name: 'test',
    log,
    begin: (onMore) => {
      rounds += 1
      return begin(onMore)
    },
    idleMs,
    stopping: stopping.signal,
  })
  onTestFinished(() => {
    stopping.abort()
    return loop.stopped
  })
  return { loop, errors, stop: () => stopping.abort(), rounds: () => rounds }
}

const reach = (rounds: () => number, n: number) =>
  waitUntil(() => rounds() >= n, { what: `round ${n}` })

it('begins a round at once, sleeps when it found nothing, and begins again when woken', async () => {
  const { loop, rounds } = run(async () => NOTHING)
  await reach(rounds, 1)
  loop.wake()
  await reach(rounds, 2)
  expect(rounds()).toBe(2)
})

it('a wake during a round is not lost: another round follows', async () => {
  let letGo = () => {}
  const held = new Promise<void>((resolve) => {
    letGo = resolve
  })
  const { loop, rounds } = run(async () => {
    await held
    return NOTHING
  })
  loop.wake()
  letGo()
  await reach(rounds, 2)
})

it('a wake while it determines how long to sleep is not lost either', async () => {
  const { loop, rounds } = run(
    async () => NOTHING,
    async () => {
      if (rounds() === 1) loop.wake()
      return FOREVER
    },
  )
  await reach(rounds, 2)
})

it('begins the next round before the work of the last one has finished', async () => {
  let finish = () => {}
  const finished = new Promise<void>((resolve) => {
    finish = resolve
  })
  let first = true
  const { rounds, errors } = run(async () => {
    const round = first ? { count: 1, finished } : NOTHING
    first = false
    return round
  })
  await reach(rounds, 2)
  finish()
  expect(errors()).toEqual([])
  finish()
})

it('logs a round that throws, and continues', async () => {
  let first = true
  const { rounds, errors } = run(async () => {
    const broken = first
    first = false
    if (broken) throw new Error('no database')
    return NOTHING
  })
  await reach(rounds, 2)
  expect(errors()).toMatchObject([{ loop: 'test', err: { message: 'no database' } }])
})

it('logs a round whose work is rejected, and continues', async () => {
  let left = [Promise.reject(new Error('the claims are lost')), Promise.resolve()]
  const { loop, stop, rounds, errors } = run(async () => {
    const [finished, ...others] = left
    left = others
    return finished ? { count: 1, finished } : NOTHING
  })
  await reach(rounds, 3)
  expect(errors()).toMatchObject([{ loop: 'test', err: { message: 'the claims are lost' } }])
  stop()
  await loop.stopped
})

it('stops at once while it sleeps, begins no more rounds, and waits for running work', async () => {
  let finish = () => {}
  const finished = new Promise<void>((resolve) => {
    finish = resolve
  })
  let first = true
  const { loop, stop, rounds } = run(async () => {
    const round = { count: first ? 1 : 0, finished: first ? finished : Promise.resolve() }
    first = false
    return round
  })
  await reach(rounds, 2)
  stop()
  const before = rounds()
  let stopped = false
  loop.stopped.then(() => {
    stopped = true
  })
  await new Promise((resolve) => setImmediate(resolve))
  expect(stopped).toBe(false)
  finish()
  await loop.stopped
  expect(rounds()).toBe(before)
})

it('records the time of its last healthy round, and until then that of its start', async () => {
  const stopping = new AbortController()
  const metrics = createMetrics()
  const recorded = vi.spyOn(metrics.loopRound, 'set')
  const checked: number[] = []
  let left = [0, 3, 0, 5]
  const loop = startMonitoredLoop(
    { metrics, log: keepLog().log, stopping: stopping.signal },
    {
      name: 'test',
      begin: async () => {
        const [count = 0, ...others] = left
        left = others
        return { count, finished: Promise.resolve() }
      },
      idleMs: async () => (left.length > 0 ? 0 : FOREVER),
      isHealthy: (count) => {
        checked.push(count)
        return count > 0
      },
    },
  )
  await waitUntil(() => checked.length >= 5, { what: 'five rounds' })
  stopping.abort()
  await loop.stopped
  expect(checked).toEqual([0, 3, 0, 5, 0])
  expect(recorded).toHaveBeenCalledTimes(1 + 2)
  expect(recorded).toHaveBeenCalledWith({ loop: 'test' }, expect.any(Number))
})
