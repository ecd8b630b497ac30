import { listExpiringKeys } from '../access/list-keys.ts'
import type { Context } from '../context.ts'
import { toIso } from '../platform/postgres/row-set.ts'
import { CLI } from '../version.ts'

const DAY_MS = 86_400_000

/**
 * Returns a pass that warns of each API key that ends soon and has no successor: at its first round, then once a day.
 * @param now monotonic clock (ms)
 */
export function createExpiryWarning(
  { sql, log }: Pick<Context, 'sql' | 'log'>,
  now = () => performance.now(),
) {
  let warnedAt = Number.NEGATIVE_INFINITY
  /** @returns the number of keys warned of */
  return async (): Promise<number> => {
    if (now() - warnedAt < DAY_MS) return 0
    const keys = await listExpiringKeys(sql)
    warnedAt = now()
    for (const { id: keyId, name, expiresAt } of keys) {
      log.warn(
        { keyId, name, expiresAt: toIso(expiresAt) },
        `an API key ends soon: replace it with: ${CLI} keys rotate ${keyId}`,
      )
    }
    return keys.length
  }
}
