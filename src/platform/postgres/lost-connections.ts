import { isDatabaseUnavailable } from './errors.ts'

/**
 * Keeps this process running when a connection is lost while it opens: the driver then leaves a rejection that cannot be
 * caught (porsager/postgres 1223). The query that waits for the connection gets its own error. Any other rejection that is
 * not handled still ends the process.
 * @param onLost called with the error
 */
export function tolerateLostConnections(onLost: (error: unknown) => void = () => {}): void {
  process.on('unhandledRejection', (reason) => {
    if (!isDatabaseUnavailable(reason)) throw reason
    onLost(reason)
  })
}
