import { isIPv6 } from 'node:net'
import { readSome } from '../config/environment.ts'
import type { Environment } from '../config/settings.ts'

/** What a health check asks: whether the process takes work, or whether it runs at all. */
export const HEALTH_PATHS = ['/readyz', '/healthz'] as const
export type HealthPath = (typeof HEALTH_PATHS)[number]

/** How long the answer may take (ms): less than the time-out that the image gives to its health check. */
const TIMEOUT_MS = 4_000

/**
 * Asks a running service for its health.
 * @param origin where it serves its health, such as `http://127.0.0.1:3000`
 * @returns whether it answered 200, and a line for the person who reads the container's state
 */
export async function askHealth(
  origin: string,
  path: HealthPath,
): Promise<{ healthy: boolean; line: string }> {
  const url = `${origin}${path}`
  try {
    const answer = await fetch(url, { signal: AbortSignal.timeout(TIMEOUT_MS) })
    const text = (await answer.text()).slice(0, 500)
    return { healthy: answer.status === 200, line: `${url}: ${answer.status} ${text}` }
  } catch (error) {
    return { healthy: false, line: `${url}: no answer (${describe(error)})` }
  }
}

/** `fetch` names the reason only in the cause of its error. */
function describe(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  return error.cause instanceof Error ? error.cause.message : error.message
}

/** Where a listener on all addresses is asked. */
const LOOPBACK = new Map([
  ['0.0.0.0', '127.0.0.1'],
  ['::', '::1'],
])

/**
 * Reads where this process serves its health: on `METRICS_PORT` if it is set.
 * @returns an origin without a path
 * @throws ConfigError
 */
export function readHealthUrl(env?: Environment): string {
  const names = ['HOST', 'PORT', 'METRICS_HOST', 'METRICS_PORT'] as const
  const { HOST, PORT, METRICS_HOST = HOST, METRICS_PORT } = readSome(env, names)
  const host = METRICS_PORT === undefined ? HOST : METRICS_HOST
  const reachable = LOOPBACK.get(host) ?? host
  return `http://${isIPv6(reachable) ? `[${reachable}]` : reachable}:${METRICS_PORT ?? PORT}`
}
