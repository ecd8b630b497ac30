import { isIPv6 } from 'node:net'
import { readSome } from '../config/environment.ts'
import type { Environment } from '../config/settings.ts'

export const HEALTH_PATHS = ['/readyz', '/healthz'] as const

/** @returns whether the service answered 200, and a line for whoever reads the state of the container */
export async function askHealth(origin: string, path: (typeof HEALTH_PATHS)[number]) {
  const url = `${origin}${path}`
  try {
    // Less than the timeout of the image's health check.
    const answer = await fetch(url, { signal: AbortSignal.timeout(4_000) })
    const text = (await answer.text()).slice(0, 500)
    return { healthy: answer.status === 200, line: `${url}: ${answer.status} ${text}` }
  } catch (error) {
    // `fetch` gives the reason only as the cause of its error.
    const { cause = error } = error instanceof Error ? error : {}
    return { healthy: false, line: `${url}: no answer (${cause})` }
  }
}

/** Returns the origin at which this process serves its health: that of `METRICS_PORT` if it is set. */
export function readHealthUrl(env?: Environment): string {
  const names = ['HOST', 'PORT', 'METRICS_HOST', 'METRICS_PORT'] as const
  const { HOST, PORT, METRICS_HOST = HOST, METRICS_PORT } = readSome(env, names)
  const host = METRICS_PORT === undefined ? HOST : METRICS_HOST
  // A listener on all addresses is reached at the loopback address.
  const reachable = host.replace(/^0\.0\.0\.0$/, '127.0.0.1').replace(/^::$/, '::1')
  return `http://${isIPv6(reachable) ? `[${reachable}]` : reachable}:${METRICS_PORT ?? PORT}`
}
