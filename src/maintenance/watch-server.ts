import { compareServer, describeStop, type Sighting } from '../db/installation.ts'
import { createThrottle } from '../platform/concurrency/rate-limiter.ts'
import type { Sql } from '../platform/postgres/types.ts'
import type { Log } from '../platform/telemetry/log.ts'

const SAY_EVERY_MS = 60_000

/**
 * Makes a pass that finds out whether the database is another server than before, or continues from an earlier moment: then
 * nothing is sent, which is a line of the log when it is found, and one a minute while it lasts.
 */
export function createServerWatch({ sql, log }: { sql: Sql; log: Log }): () => Promise<void> {
  const throttle = createThrottle(SAY_EVERY_MS)
  const sighting: Sighting = { seenAt: undefined }
  let isStopped = false
  return async () => {
    const stop = await compareServer(sql, sighting)
    if (stop && throttle(stop.since)) log.error({ since: stop.since }, describeStop(stop))
    if (!stop && isStopped) log.info('refunds and events are sent again')
    isStopped = stop !== undefined
  }
}
