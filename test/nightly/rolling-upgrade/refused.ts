import { type Exchange, isFeed } from './balancer.ts'

/** Answers of the API that no request of the drill deserves; others are for its order systems to judge. */
const UNDESERVED = [401, 403, 429]

/**
 * Lists what was refused or went unanswered. A well-signed notification must be answered with 200, everything else
 * must be answered by the service itself, without an error of its own.
 */
export function listRefused(exchanges: readonly Exchange[]): string[] {
  return exchanges
    .filter(isRefused)
    .map(
      ({ phase, target, method, path, status, isAbandoned }) =>
        `${phase}: ${target} answered ${method} ${path} with ${isAbandoned ? 'nothing in time' : status}`,
    )
}

function isRefused({ path, status, isAbandoned }: Exchange): boolean {
  if (isNotification(path)) return status !== 200
  // A reader of the feed leaves when it has read enough.
  if (isAbandoned) return !isFeed(path)
  return status === 0 || status >= 500 || UNDESERVED.includes(status)
}

/** Counts the notifications that a process acknowledged in a phase. */
export function countAcknowledged(
  exchanges: readonly Exchange[],
  phase: string,
  target: string,
): number {
  return exchanges.filter(
    (one) =>
      isNotification(one.path) &&
      one.phase === phase &&
      one.target === target &&
      one.status === 200,
  ).length
}

/** Writes a row for each phase and process. */
export function writeTable(exchanges: readonly Exchange[]): string {
  const groups = new Map<string, Exchange[]>()
  for (const one of exchanges) {
    const name = `${one.phase.padEnd(24)}${one.target.padEnd(12)}`
    groups.set(name, [...(groups.get(name) ?? []), one])
  }
  const rows = [...groups].map(([name, all]) => {
    const notifications = all.filter((one) => isNotification(one.path))
    const slowest = Math.max(0, ...notifications.map(({ tookMs }) => tookMs)).toFixed(0)
    const refused = listRefused(all).length
    return `${name}${all.length} requests, ${notifications.length} of them notifications (slowest ${slowest} ms), ${refused} refused`
  })
  return rows.join('\n')
}

function isNotification(path: string): boolean {
  return path === '/ipn'
}
