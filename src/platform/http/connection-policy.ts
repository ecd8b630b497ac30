import type { Counter } from 'prom-client'
import type { Log } from '../telemetry/log.ts'
import { createLogThrottle } from '../telemetry/log-throttle.ts'
import { type Cidr, compileNetworks } from './client-address.ts'
import type { ConnectionPolicy, ConnectionRefusal } from './connection-limit.ts'

/** A flood of connections must not become a flood of lines (ms). */
const LOG_EVERY_MS = 60_000

const EXPLAINED: Readonly<Record<ConnectionRefusal, string>> = {
  network:
    'connections were refused, because their network has as many open as one may have; if this is your proxy, name it in TRUSTED_PROXIES',
  total: 'connections were refused, because this process has as many open as it takes',
}

/** Counts refused connections by reason, and logs one line a minute of each, with the newest address. */
export function createConnectionPolicy({
  proxies,
  refused,
  log,
}: {
  proxies: readonly Cidr[]
  refused: Counter<'reason'>
  log: Log
}): ConnectionPolicy {
  const throttles = {
    network: createLogThrottle(LOG_EVERY_MS),
    total: createLogThrottle(LOG_EVERY_MS),
  }
  return {
    isTrustedProxy: compileNetworks(proxies),
    onRefused(reason, address) {
      refused.inc({ reason })
      const suppressed = throttles[reason]()
      if (suppressed) log.warn({ address, ...suppressed }, EXPLAINED[reason])
    },
  }
}
