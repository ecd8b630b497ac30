import { isIPv6 } from 'node:net'
import { readSome } from '../config/environment.ts'
import type { Environment } from '../config/settings.ts'

/** What a health check asks: whether the process takes work, or whether it runs at all. */
export const HEALTH_PATHS = ['/readyz', '/healthz'] as const

/** @returns whether a running service answered 200, and a line for the person who reads the container's state */
export async function askHealth(origin: string, path: (typeof HEALTH_PATHS)[number]) {
  const url = `${origin}${path}`
  try {
    // Less than the time-out that the image gives to its health check.
    const answer = await fetch(url, { signal: AbortSignal.timeout(4_000) })
    const text = (await answer.text()).slice(0, 500)
    return { healthy: answer.status === 200, line: `${url}: ${answer.status} ${text}` }
  } catch (error) {
    // `fetch` names the reason only in the cause of its error.
    const { cause = error } = error instanceof Error ? error : {}
    return { healthy: false, line: `${url}: no answer (${cause})` }
  }
}

/** Reads the origin where this process serves its health: on `METRICS_PORT` if it is set. */
export function readHealthUrl(env?: Environment): string {
  const names = ['HOST', 'PORT', 'METRICS_HOST', 'METRICS_PORT'] as const
  const { HOST, PORT, METRICS_HOST = HOST, METRICS_PORT } = readSome(env, names)
  const host = METRICS_PORT === undefined ? HOST : METRICS_HOST
  // A listener on all addresses is asked at that of this machine.
  const reachable = host.replace(/^0\.0\.0\.0$/, '127.0.0.1').replace(/^::$/, '::1')
  return `http://${isIPv6(reachable) ? `[${reachable}]` : reachable}:${METRICS_PORT ?? PORT}`
}
