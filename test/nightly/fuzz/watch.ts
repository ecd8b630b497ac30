import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { expect } from 'vitest'
import { waitUntil } from '../../support/wait-until.ts'

/** What inputs may leave behind: compiled code, pools that fill up, bounded tables of the service. */
const MAX_GROWTH_BYTES = 24 * 1024 * 1024
const MAX_HANDLES = 40

/** Sees what nobody caught, and what is held after many inputs. */
export function watchProcess() {
  const strays: unknown[] = []
  const keep = (stray: unknown) => void strays.push(stray)
  process.on('unhandledRejection', keep).on('uncaughtException', keep)
  let before: ReturnType<typeof measure> | undefined
  return {
    stop: () => void process.off('unhandledRejection', keep).off('uncaughtException', keep),
    expectQuiet: () => expect(strays.splice(0)).toEqual([]),
    /** From here on nothing may grow. */
    mark() {
      before = measure()
    },
    async expectNoGrowth(): Promise<void> {
      if (!before) return
      const { bytes, handles } = before
      await waitUntil(() => measure().handles <= handles + MAX_HANDLES, {
        what: `at most ${handles + MAX_HANDLES} handles`,
        everyMs: 50,
      })
      expect((measure().bytes - bytes) / 1024 / 1024).toBeLessThan(MAX_GROWTH_BYTES / 1024 / 1024)
      expect(strays).toEqual([])
    },
  }
}

function measure() {
  setFlagsFromString('--expose-gc')
  const collect: unknown = runInNewContext('gc')
  if (typeof collect === 'function') collect()
  const { heapUsed, external } = process.memoryUsage()
  return { bytes: heapUsed + external, handles: process.getActiveResourcesInfo().length }
}
