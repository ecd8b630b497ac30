import { readConfig } from '../config/config.ts'
import { isDatabaseUnavailable } from '../platform/postgres/errors.ts'
import { createLog } from '../platform/telemetry/log.ts'
import { createStopHandler, type Part, stopParts } from './parts.ts'
import { startParts } from './start-parts.ts'

/**
 * Starts everything that the settings ask for, and returns while it runs; a signal stops it and ends the process.
 * @throws ConfigError, or the error of the part that could not start, after stopping the others
 */
export async function serve(): Promise<void> {
  const config = readConfig()
  const log = createLog(config.LOG_LEVEL)
  const parts: Part[] = []
  // If a connection is lost while it opens, the driver leaves a rejection that cannot be caught
  // (porsager/postgres 1223). The query that waits for the connection gets its own error.
  process.on('unhandledRejection', (reason) => {
    if (!isDatabaseUnavailable(reason)) throw reason
    log.warn({ err: reason }, 'a database connection was lost while it was being opened')
  })
  const stop = createStopHandler(parts, config.DRAIN_MS, log)
  // `on`, not `once`: Ctrl-C under npm arrives twice, and the second signal must not abort the stop.
  process.on('SIGTERM', stop)
  process.on('SIGINT', stop)
  try {
    await startParts(config, log, parts)
  } catch (error) {
    await stopParts(parts)
    throw error
  }
}
