import type { Sql } from '../db/client.ts'
import { createGroup } from '../group.ts'
import { type ApiKey, findKeys, hashKey } from './keys.ts'

export type KnownKeys = {
  /**
   * The live key with this text. Look-ups that come while one is on its way share the next.
   * @param asOf `now` asks the database; `lately` believes an answer of the last second
   */
  find(text: string, asOf: 'now' | 'lately'): Promise<ApiKey | undefined>
}

/** For how long a key that ended may still read (ms). The look-up costs as much as the read itself. */
export const BELIEVED_MS = 1_000

const MAX_KNOWN = 1_000
const MAX_SHARED = 100
const PATIENCE_MS = 100

/** @param now milliseconds on a clock that only goes forward */
export function createKnownKeys(sql: Sql, now = () => performance.now()): KnownKeys {
  const group = createGroup<string, ApiKey | undefined>(MAX_SHARED, PATIENCE_MS)
  const known = new Map<string, { key: ApiKey; askedAt: number }>()

  async function ask(hash: string): Promise<ApiKey | undefined> {
    const askedAt = now()
    const key = await group.add(hash, (hashes) => findKeys(sql, hashes))
    known.delete(hash)
    if (key) known.set(hash, { key, askedAt })
    for (const oldest of known.keys()) {
      if (known.size <= MAX_KNOWN) break
      known.delete(oldest)
    }
    return key
  }

  return {
    async find(text, asOf) {
      const hash = hashKey(text).toString('hex')
      const found = asOf === 'lately' ? known.get(hash) : undefined
      return found && now() - found.askedAt < BELIEVED_MS ? found.key : await ask(hash)
    },
  }
}
