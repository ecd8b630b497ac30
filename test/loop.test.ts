import { expect, it, onTestFinished, vi } from 'vitest'
import { type LoopOptions, type LoopRound, startLoop, watchLoop } from '../src/loop.ts'
import { createMetrics } from '../src/metrics.ts'
import { keepLog } from './support/sync.ts'
import { waitUntil } from './support/wait-until.ts'

const FOREVER = 2 ** 31 - 1
const NOTHING: LoopRound = { count: 0, finished: Promise.resolve() }

/** A loop whose rounds the test decides; it rests for ever unless it is woken. */
function run(begin: LoopOptions['begin'], rest = async () => FOREVER) {
  const stopping = new AbortController()
  const { log, errors } = keepLog()
  let rounds = 0
  const loop = startLoop({
    name: 'test',
    log,
    begin: (onMore) => {
      rounds += 1
      return begin(onMore)
    },
    rest,
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

it('begins a round at once, rests when it found nothing, and begins again when woken', async () => {
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

it('a wake while it finds out how long to rest is not lost either', async () => {
  const { loop, rounds } = run(
    async () => NOTHING,
    async () => {
      if (rounds() === 1) loop.wake()
      return FOREVER
    },
  )
  await reach(rounds, 2)
})

it('begins the next round before the claims of the last are worked off', async () => {
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

it('a round that throws is said aloud, and the loop goes on', async () => {
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

it('a round whose work is rejected is said aloud and ends nothing', async () => {
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

it('stops at once while it rests, begins nothing more, and waits for what runs', async () => {
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

it('shows the time of its last round that proves something, and until then that of its start', async () => {
  const stopping = new AbortController()
  const metrics = createMetrics()
  const touched = vi.spyOn(metrics.loopRound, 'set')
  const judged: number[] = []
  let left = [0, 3, 0, 5]
  const loop = watchLoop(
    { metrics, log: keepLog().log, stopping: stopping.signal },
    {
      name: 'test',
      begin: async () => {
        const [count = 0, ...others] = left
        left = others
        return { count, finished: Promise.resolve() }
      },
      rest: async () => (left.length > 0 ? 0 : FOREVER),
      proves: (count) => {
        judged.push(count)
        return count > 0
      },
    },
  )
  await waitUntil(() => judged.length >= 5, { what: 'its rounds' })
  stopping.abort()
  await loop.stopped
  expect(judged).toEqual([0, 3, 0, 5, 0])
  expect(touched).toHaveBeenCalledTimes(1 + 2)
  expect(touched).toHaveBeenCalledWith({ loop: 'test' }, expect.any(Number))
})
