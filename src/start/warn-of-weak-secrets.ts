import type { MerchantAccount } from '../config/accounts.ts'
import type { Config } from '../config/config.ts'
import { findWeakSecrets, STRONG_BITS } from '../config/conflicts.ts'
import type { Log } from '../platform/telemetry/log.ts'

/**
 * Names the accounts whose signing secret may be guessed from one signed message. The demo's own is published.
 * @param includes whether an account is to be checked; all are by default
 */
export function warnOfWeakSecrets(
  { accounts, demo }: Pick<Config, 'accounts' | 'demo'>,
  log: Log,
  includes: (account: MerchantAccount) => boolean = () => true,
): void {
  if (demo) return
  for (const weak of findWeakSecrets(accounts.filter(includes))) {
    log.warn(
      weak,
      `this signing secret has at most ${weak.bits} bits, so that it may be guessed from one signed message; have the gateway issue one of ${STRONG_BITS} random bits, for example 32 hexadecimal digits`,
    )
  }
}
