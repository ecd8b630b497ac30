import { expect, it, onTestFinished } from 'vitest'
import {
  type Pass,
  startPasses,
  startWorkerLoop,
  type WorkerLoopOptions,
  type WorkerRound,
} from '../../../../src/platform/concurrency/worker-loop.ts'
import { makeGate } from '../../../support/gate.ts'
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
  const held = makeGate()
  const { loop, rounds } = run(async () => {
    await held.opened
    return NOTHING
  })
  loop.wake()
  held.open()
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

it.each<[string, () => Promise<WorkerRound>]>([
  ['that throws', () => Promise.reject(new Error('planted'))],
  [
    'whose work is rejected',
    async () => ({ count: 1, finished: Promise.reject(new Error('planted')) }),
  ],
])('logs a round %s, and continues', async (_, fail) => {
  const left = [fail]
  const { rounds, errors } = run(async () => (await left.pop()?.()) ?? NOTHING)
  await waitUntil(() => rounds() >= 2 && errors().length > 0, { what: 'the next round' })
  expect(errors()).toMatchObject([{ loop: 'test', err: { message: 'planted' } }])
})

it('stops at once while it sleeps, begins no more rounds, and waits for running work', async () => {
  const work = makeGate()
  const left = [{ count: 1, finished: work.opened }]
  const { loop, stop, rounds } = run(async () => left.pop() ?? NOTHING)
  await reach(rounds, 2)
  stop()
  const before = rounds()
  let stopped = false
  loop.stopped.then(() => {
    stopped = true
  })
  await new Promise((resolve) => setImmediate(resolve))
  expect(stopped).toBe(false)
  work.open()
  await loop.stopped
  expect(rounds()).toBe(before)
})

/** Starts passes that never listen, and ends them with the test. */
async function start(passes: readonly Pass[], onRound: (name: string) => void = () => {}) {
  const stopping = new AbortController()
  const { log, errors } = keepLog()
  const listen = () => Promise.resolve()
  const loops = await startPasses({ listen, log, stopping: stopping.signal, onRound }, passes)
  const stop = async () => {
    stopping.abort()
    await Promise.all(loops.map(({ stopped }) => stopped))
  }
  onTestFinished(stop)
  return { errors, stop }
}

const idleMs = async () => FOREVER

it('tells of a start, and of each healthy round', async () => {
  const told: string[] = []
  const checked: number[] = []
  const left = [5, 0, 3, 0]
  const pass = {
    name: 'test',
    begin: async () => ({ count: left.pop() ?? 0, finished: Promise.resolve() }),
    idleMs: async () => (left.length > 0 ? 0 : FOREVER),
    isHealthy: (count: number) => {
      checked.push(count)
      return count > 0
    },
  }
  const { stop } = await start([pass], (name) => told.push(name))
  await waitUntil(() => checked.length >= 5, { what: 'five rounds' })
  await stop()
  expect(checked).toEqual([0, 3, 0, 5, 0])
  expect(told).toEqual(['test', 'test', 'test'])
})

it('a pass that fails, and one that hangs, delay no other', async () => {
  let rounds = 0
  const hung = makeGate()
  const { errors, stop } = await start([
    { name: 'failing', begin: () => Promise.reject(new Error('planted')), idleMs },
    { name: 'hanging', begin: () => hung.opened.then(() => NOTHING), idleMs },
    {
      name: 'working',
      begin: async () => {
        rounds += 1
        return { count: rounds < 3 ? 1 : 0, finished: Promise.resolve() }
      },
      idleMs,
    },
  ])
  await waitUntil(() => rounds === 3, { what: 'the rounds of the pass behind them' })
  expect(errors()[0]?.msg).toContain('failing')
  hung.open()
  await stop()
})

it('listens on all channels before a loop starts', async () => {
  const began: string[] = []
  const begin = async () => {
    began.push('round')
    return NOTHING
  }
  const started = startPasses(
    {
      listen: () => Promise.reject(new Error('no connection')),
      log: keepLog().log,
      stopping: new AbortController().signal,
      onRound: () => {},
    },
    [
      { name: 'one', begin, idleMs },
      { name: 'other', begin, idleMs, channel: 'planted' },
    ],
  )
  await expect(started).rejects.toThrow('no connection')
  expect(began).toEqual([])
})
