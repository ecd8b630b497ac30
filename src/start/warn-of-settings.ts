import type { Config } from '../config/config.ts'
import { findWeakSecrets, STRONG_BITS } from '../config/secret-strength.ts'
import type { Log } from '../platform/telemetry/log.ts'

/**
 * Logs what is doubtful about valid settings: signing secrets that may be guessed from one signed message (the demo's own
 * is published), and variables without effect.
 * @param ignored names in the environment that begin like a setting and are none
 */
export function warnOfSettings(
  { accounts, demo }: Pick<Config, 'accounts' | 'demo'>,
  ignored: readonly string[],
  log: Log,
): void {
  if (ignored.length > 0) {
    log.warn(
      { names: ignored },
      'these environment variables are not settings, and have no effect; if Kubernetes sets them for a service of this namespace, add enableServiceLinks: false to the specification of the pod',
    )
  }
  for (const weak of demo ? [] : findWeakSecrets(accounts)) {
    log.warn(
      weak,
      `this signing secret has at most ${weak.bits} bits, so that it may be guessed from one signed message; have the gateway issue one of ${STRONG_BITS} random bits, for example 32 hexadecimal digits`,
    )
  }
}
