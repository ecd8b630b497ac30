import type { Config } from '../config/config.ts'
import type { Log } from '../platform/telemetry/log.ts'
import { warnOfWeakSecrets } from './warn-of-weak-secrets.ts'

/**
 * Logs what is doubtful about valid settings: signing secrets that may be guessed from one signed message (the demo's own
 * is published), and variables without effect.
 * @param ignored names in the environment that begin like a setting and are none
 */
export function warnOfSettings(
  config: Pick<Config, 'accounts' | 'demo'>,
  ignored: readonly string[],
  log: Log,
): void {
  if (ignored.length > 0) {
    log.warn(
      { names: ignored },
      'these environment variables are not settings, and have no effect; if Kubernetes sets them for a service of this namespace, add enableServiceLinks: false to the specification of the pod',
    )
  }
  warnOfWeakSecrets(config, log)
}
