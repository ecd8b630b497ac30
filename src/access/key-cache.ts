import { createBatcher } from '../platform/concurrency/batcher.ts'
import type { Sql } from '../platform/postgres/types.ts'
import { type ApiKey, findKeys, hashKey } from './keys.ts'

export type KeyCache = {
  /**
   * Finds the live key with this text. Lookups that arrive while one is running share the next one.
   * @param freshness `current` asks the database; `cached` accepts a result up to a second old
   */
  find(text: string, freshness: 'current' | 'cached'): Promise<ApiKey | undefined>
  /** Returns the live key with this text if it is cached (for up to a second); never reads the database. */
  peek(text: string): ApiKey | undefined
}

/** How long a revoked or expired key can still read (ms). Without it a lookup costs as much as the read itself. */
export const CACHE_TTL_MS = 1_000

const MAX_ENTRIES = 1_000
const MAX_BATCH = 100
const SLOW_LOOKUP_MS = 100

/** @param now monotonic clock (ms) */
export function createKeyCache(sql: Sql, now = () => performance.now()): KeyCache {
  const lookups = createBatcher<string, ApiKey | undefined>(MAX_BATCH, SLOW_LOOKUP_MS)
  const entries = new Map<string, { key: ApiKey; fetchedAt: number }>()

  async function fetchKey(hash: string): Promise<ApiKey | undefined> {
    const fetchedAt = now()
    const key = await lookups.add(hash, (hashes) => findKeys(sql, hashes))
    entries.delete(hash)
    if (key) entries.set(hash, { key, fetchedAt })
    for (const oldest of entries.keys()) {
      if (entries.size <= MAX_ENTRIES) break
      entries.delete(oldest)
    }
    return key
  }

  function getCached(hash: string): ApiKey | undefined {
    const cached = entries.get(hash)
    return cached && now() - cached.fetchedAt < CACHE_TTL_MS ? cached.key : undefined
  }

  return {
    async find(text, freshness) {
      const hash = hashKey(text).toString('hex')
      return (freshness === 'cached' ? getCached(hash) : undefined) ?? (await fetchKey(hash))
    },
    peek: (text) => getCached(hashKey(text).toString('hex')),
  }
}
