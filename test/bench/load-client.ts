import { fork } from 'node:child_process'
import { once } from 'node:events'
import type { Job, LoadResult } from './load.ts'
import { findBuilt, keepChild } from './processes.ts'

export type Load = {
  /** @throws Error if anything but 200 (or 503, overloaded, which does not count) was answered */
  run(job: Job): Promise<LoadResult>
  stop(): void
}

/** The process that makes requests. */
export function startLoad(): Load {
  const child = keepChild(fork(findBuilt('test/bench/load.ts'), { execArgv: [] }))
  return {
    async run(job) {
      const answered = once(child, 'message')
      child.send(job)
      const [result]: (LoadResult & { error?: string })[] = await answered
      if (!result || result.error) throw new Error(`the load failed: ${result?.error}`)
      const bad = Object.keys(result.statuses).filter((status) => !['200', '503'].includes(status))
      if (bad.length > 0) throw new Error(`answered ${JSON.stringify(result.statuses)}`)
      return result
    },
    stop() {
      child.kill()
    },
  }
}

/** Answered requests per second. */
export function rateOf({ count, seconds }: LoadResult): number {
  return count / seconds
}
