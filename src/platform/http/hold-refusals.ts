import { setTimeout as sleep } from 'node:timers/promises'
import { createMiddleware } from 'hono/factory'
import type { HttpEnv } from './env.ts'

/** Long enough that a client which repeats at once costs little, short enough for one that waits for its answer (ms). */
const HOLD_MS = 200

/** What they may hold in memory. Beyond it refusals are answered at once. */
const MAX_HELD = 2_000

/**
 * Holds each 429 back for about 200 ms: clients that repeat a refused request at once would otherwise keep this process
 * busy with refusals.
 */
export function holdRefusals() {
  let held = 0
  return createMiddleware<HttpEnv>(async (c, next) => {
    await next()
    if (c.res.status !== 429 || held >= MAX_HELD) return
    held += 1
    // Spread out, so that refusals which began together do not end together.
    await sleep(HOLD_MS * (0.5 + Math.random()))
    held -= 1
  })
}
