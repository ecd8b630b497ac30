import { listIgnoredVariables, readConfig } from '../config/config.ts'
import type { Environment } from '../config/settings.ts'
import { tolerateLostConnections } from '../platform/postgres/lost-connections.ts'
import { createLog } from '../platform/telemetry/log.ts'
import { createParts, createStop } from './parts.ts'
import { createReloader } from './reload.ts'
import type { SignalHandlers } from './signals.ts'
import { startParts } from './start-parts.ts'
import { warnOfSettings } from './warn-of-settings.ts'

/**
 * Starts everything that the settings ask for, and returns while it runs, or when a stop that came during the start has
 * ended; a stop ends the process.
 * @param handle attaches what SIGTERM and SIGINT (stop) and SIGHUP (read the settings again) do
 * @param env the environment variables; this process's own if left out
 * @throws ConfigError, or the error of the part that could not start, after stopping the others
 */
export async function serve(
  handle: (handlers: SignalHandlers) => void,
  env?: Environment,
): Promise<void> {
  const config = readConfig(env)
  const log = createLog(config.LOG_LEVEL)
  warnOfSettings(config, listIgnoredVariables(env), log)
  const parts = createParts()
  tolerateLostConnections((err) =>
    log.warn({ err }, 'a database connection was lost while it was being opened'),
  )
  const stop = createStop(parts, config.DRAIN_MS, log)
  const reloader = createReloader(log, () => readConfig(env))
  handle({ stop: stop.request, reload: reloader.request })
  try {
    const { ctx } = await startParts(config, log, parts)
    reloader.attach(ctx)
  } catch (error) {
    // What fails after a stop has begun fails because of it.
    const stopped = stop.begun()
    if (stopped) return await stopped
    await parts.stop()
    throw error
  }
}
