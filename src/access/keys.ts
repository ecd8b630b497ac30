import { createHash } from 'node:crypto'
import { actors } from '../db/schema.ts'
import { createBatcher } from '../platform/concurrency/batcher.ts'
import { listColumns } from '../platform/postgres/row-set.ts'
import type { Sql } from '../platform/postgres/types.ts'

export const SCOPES = [
  'payments:read',
  'refunds:read',
  'refunds:write',
  'refunds:approve',
  'cards:read',
  'webhooks:write',
  'ops',
] as const
export type Scope = (typeof SCOPES)[number]

/** Stands for all merchant accounts. */
export const EVERY_MERCHANT = '*'

/** Whether the row `k` of `actors` is live, in SQL: by the clock, as its transaction may have begun much earlier. */
export const LIVE_SQL = `(k.ended_at is null and (k.expires_at is null or k.expires_at > clock_timestamp()))`

type Actor = typeof actors.$inferSelect

/** Decimal strings by currency code. */
export type CapsByCurrency = Readonly<Record<string, string>>

const CAPS = [
  'refundMax',
  'refundDailyMax',
  'refundMaxByCurrency',
  'refundDailyMaxByCurrency',
] as const
export const GRANTED = ['id', 'name', 'scopes', ...CAPS, 'ratePerMinute', 'networks'] as const
const COLUMNS = [...GRANTED, 'merchants', 'chainId', 'principal'] as const

/** A stored key. Only the SHA-256 of its text is stored: as the text is random, a plain hash protects it. */
export type ApiKey = Readonly<Pick<Actor, (typeof COLUMNS)[number]>>

export const listKeyColumns = (alias: string) => listColumns(actors, alias, COLUMNS)

type FoundKey = PromiseSettledResult<ApiKey | undefined>

/**
 * Finds the live keys with these hashes (hexadecimal). No constant-time comparison is needed: from the timing an
 * attacker can at best learn the start of a hash, which does not lead to a key of 256 random bits.
 */
export async function findKeys(sql: Sql, hashes: readonly string[]): Promise<FoundKey[]> {
  const rows = await sql<(ApiKey & { hash: string })[]>`
    select encode(hash, 'hex') as hash, ${sql.unsafe(listKeyColumns('k'))} from actors as k
    where hash in (
        select decode(h, 'hex') from json_array_elements_text(${JSON.stringify(hashes)}::json) as h)
      and ${sql.unsafe(LIVE_SQL)}`
  const keys = new Map(rows.map(({ hash, ...key }) => [hash, key]))
  return hashes.map((hash) => ({ status: 'fulfilled', value: keys.get(hash) }))
}

export type KeyCache = ReturnType<typeof createKeyCache>

/** How long a revoked or expired key can still read (ms). Without a cache a lookup costs as much as the read itself. */
export const CACHE_TTL_MS = 1_000

const MAX_ENTRIES = 1_000

/** Lookups that come while one is running share the next one. @param now monotonic clock (ms) */
export function createKeyCache(sql: Sql, now = () => performance.now()) {
  const lookups = createBatcher<string, ApiKey | undefined>(100, 100)
  const entries = new Map<string, { key: ApiKey; fetchedAt: number }>()

  async function fetchKey(hash: string): Promise<ApiKey | undefined> {
    const fetchedAt = now()
    const key = await lookups.add(hash, (hashes) => findKeys(sql, hashes))
    entries.delete(hash)
    if (key) entries.set(hash, { key, fetchedAt })
    const [oldest] = entries.size > MAX_ENTRIES ? entries.keys() : []
    if (oldest !== undefined) entries.delete(oldest)
    return key
  }

  function getCached(hash: string): ApiKey | undefined {
    const cached = entries.get(hash)
    return cached && now() - cached.fetchedAt < CACHE_TTL_MS ? cached.key : undefined
  }

  return {
    /** Finds the live key with this text. `current` asks the database, `cached` accepts a result up to a second old. */
    async find(text: string, freshness: 'current' | 'cached'): Promise<ApiKey | undefined> {
      const hash = hashKey(text).toString('hex')
      return (freshness === 'cached' ? getCached(hash) : undefined) ?? (await fetchKey(hash))
    },
    /** Returns the live key with this text if it is cached, without asking the database. */
    peek: (text: string) => getCached(hashKey(text).toString('hex')),
  }
}

export const hashKey = (text: string): Buffer => createHash('sha256').update(text).digest()

/** The chains of the keys of `API_KEY` and of the demo. Each is one principal, whatever its text is. */
export const SETTING_CHAIN = '5e771000-0000-4000-8000-000000000001'
export const DEMO_CHAIN = 'de300000-0000-4000-8000-000000000002'

/** Whether the row `k` of `actors` ends within a week without a successor. Keys of `API_KEY` end for a new text. */
export const EXPIRING_SOON = `(k.ended_at is null and k.expires_at is not null and k.expires_at > now()
  and k.expires_at < now() + interval '7 days' and k.chain_id is distinct from '${SETTING_CHAIN}'
  and not exists (select from actors as n where n.replaces = k.id))`
