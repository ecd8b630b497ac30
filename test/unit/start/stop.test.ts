import { afterEach, expect, it, vi } from 'vitest'
import { createLog } from '../../../src/platform/telemetry/log.ts'
import { createParts, createStop, type Part } from '../../../src/start/start.ts'
import { makeGate } from '../../support/gate.ts'

afterEach(() => {
  vi.useRealTimers()
  vi.restoreAllMocks()
})

/** A handler whose parts take note of what is asked of them, and never end. */
function prepare({ drains }: { drains: boolean }) {
  vi.useFakeTimers()
  const asked: string[] = []
  vi.spyOn(process, 'exit').mockImplementation((code): never => {
    asked.push(`exit ${code}`)
    throw new Error('the process has ended')
  })
  const part: Part = {
    ...(drains ? { drain: () => void asked.push('drain') } : {}),
    stop() {
      asked.push('stop')
      return new Promise(() => {})
    },
  }
  const parts = createParts()
  parts.add(part)
  return { asked, stop: createStop(parts, 60_000, createLog('silent')).request }
}

it('the time after which a process exits anyway begins when it has drained, and a second signal changes nothing', async () => {
  const { asked, stop } = prepare({ drains: true })
  stop('SIGTERM')
  stop('SIGTERM')
  await vi.advanceTimersByTimeAsync(59_999)
  expect(asked).toEqual(['drain'])
  await vi.advanceTimersByTimeAsync(1)
  expect(asked).toEqual(['drain', 'stop'])
  await vi.advanceTimersByTimeAsync(9_499)
  expect(asked).toEqual(['drain', 'stop'])
  await expect(vi.advanceTimersByTimeAsync(1)).rejects.toThrow('the process has ended')
  expect(asked).toEqual(['drain', 'stop', 'exit 0'])
})

it('a process that was never ready does not drain', async () => {
  const { asked, stop } = prepare({ drains: false })
  stop('SIGTERM')
  await vi.advanceTimersByTimeAsync(0)
  expect(asked).toEqual(['stop'])
})

it('a part that is started after the stop began, or after it ended, is stopped as well', async () => {
  const stopped: string[] = []
  const gate = makeGate()
  const parts = createParts()
  const part = (name: string, until?: Promise<void>): Part => ({
    async stop() {
      await until
      stopped.push(name)
    },
  })
  parts.add(part('database', gate.opened))
  const stop = parts.stop()
  parts.add(part('gateway'))
  gate.open()
  await stop
  expect(stopped).toEqual(['database', 'gateway'])
  parts.add(part('service'))
  await parts.stop()
  expect(stopped).toEqual(['database', 'gateway', 'service'])
})

it('the part that was started last is stopped first', async () => {
  const stopped: string[] = []
  const parts = createParts()
  for (const name of ['database', 'gateway', 'service']) {
    parts.add({ stop: async () => void stopped.push(name) })
  }
  await parts.stop()
  expect(stopped).toEqual(['service', 'gateway', 'database'])
})
