import { listIgnoredVariables, readConfig } from '../config/config.ts'
import type { Environment } from '../config/settings.ts'
import { isDatabaseUnavailable } from '../platform/postgres/errors.ts'
import { createLog } from '../platform/telemetry/log.ts'
import { createHangUpHandler } from './hang-up.ts'
import { createStopHandler, type Part, stopParts } from './parts.ts'
import { createReloader } from './reload.ts'
import { startParts } from './start-parts.ts'
import { warnOfSettings } from './warn-of-settings.ts'

/**
 * Starts everything that the settings ask for, and returns while it runs; SIGTERM and SIGINT stop it and end the process,
 * and SIGHUP reads the settings again.
 * @param env the environment variables; this process's own if left out
 * @throws ConfigError, or the error of the part that could not start, after stopping the others
 */
export async function serve(env?: Environment): Promise<void> {
  const config = readConfig(env)
  const log = createLog(config.LOG_LEVEL)
  warnOfSettings(config, listIgnoredVariables(env), log)
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
  const reloader = createReloader(log, () => readConfig(env))
  process.on('SIGHUP', createHangUpHandler(reloader.request, stop))
  try {
    const { ctx } = await startParts(config, log, parts)
    reloader.attach(ctx)
  } catch (error) {
    await stopParts(parts)
    throw error
  }
}
