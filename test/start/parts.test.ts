import { afterEach, expect, it, vi } from 'vitest'
import { createLog } from '../../src/platform/telemetry/log.ts'
import { createStopHandler, type Part } from '../../src/start/parts.ts'

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
  return { asked, stop: createStopHandler([part], 60_000, createLog('silent')) }
}

it('the time after which a process exits anyway begins when it has drained, and a second signal changes nothing', async () => {
  const { asked, stop } = prepare({ drains: true })
  stop()
  stop()
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
  stop()
  await vi.advanceTimersByTimeAsync(0)
  expect(asked).toEqual(['stop'])
})
