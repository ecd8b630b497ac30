import { randomBytes } from 'node:crypto'
import { and, eq, isNull, sql } from 'drizzle-orm'
import { apiKeys } from '../db/schema.ts'
import { build } from '../platform/postgres/drizzle.ts'
import type { Tx } from '../platform/postgres/types.ts'
import { type CapsByCurrency, hashKey, type Scope } from './keys.ts'
import { foldName } from './principal.ts'

/** The parameters of a new key. Amounts are decimal strings. */
export type NewKey = {
  /** Left out, it is made up. */
  id?: string
  name: string
  scopes: readonly Scope[]
  merchantCode: string
  refundMax: string | null
  refundDailyMax: string | null
  refundMaxByCurrency: CapsByCurrency | null
  refundDailyMaxByCurrency: CapsByCurrency | null
  ratePerMinute: number | null
  /** The networks (CIDR) that it may be used from, null for any. */
  networks: readonly string[] | null
  /** The person for whom it was created: all keys of a person are the same principal. */
  person: string | null
  /** ISO 8601, null for no expiry. */
  expiresAt: string | null
}

/** A new key with its text, which cannot be retrieved again: only its hash is stored. */
export type CreatedKey = { id: string; text: string }

/** Creates a key. Its person is spelled as in the first key of that person: the spelling makes the principal. */
export async function createKey(tx: Tx, key: NewKey): Promise<CreatedKey & Pick<NewKey, 'person'>> {
  const text = generateKeyText()
  const person = key.person === null ? null : await findSpelling(tx, key.person)
  const [row] = await build(tx)
    .insert(apiKeys)
    .values({
      ...key,
      person,
      scopes: [...key.scopes],
      networks: key.networks && [...key.networks],
      hash: hashKey(text),
    })
    .returning({ id: apiKeys.id })
  if (!row) throw new Error('no key was stored')
  return { id: row.id, text, person }
}

/** Finds how the keys of a person spell the name so far. */
async function findSpelling(tx: Tx, person: string): Promise<string> {
  const rows = await tx<{ person: string }[]>`
    select person from api_keys where person is not null order by created_at, id`
  const found = rows.find((one) => foldName(one.person) === foldName(person))
  return found?.person ?? person
}

export type Rotation =
  | { kind: 'rotated'; created: CreatedKey; oldEndsAt: string; newEndsAt: string | null }
  | { kind: 'not_live' }
  | { kind: 'already_rotated'; successorId: string }

/**
 * Replaces a live key, which expires after the grace period, or at its own expiry if that is earlier. The new key
 * has the same permissions and lifetime, and shares the old one's caps and rate. A key can be rotated only
 * once, so at most two keys of a chain are live.
 * @param graceS how long both keys are valid (seconds)
 */
export async function rotateKey(tx: Tx, id: string, graceS: number): Promise<Rotation> {
  const [old] = await tx<{ live: boolean }[]>`
    select (revoked_at is null and (expires_at is null or expires_at > now())) as live
    from api_keys where id = ${id} for update`
  if (!old?.live) return { kind: 'not_live' }
  const text = generateKeyText()
  const [created] = await tx<{ id: string; newEndsAt: string | null }[]>`
    insert into api_keys (name, hash, scopes, merchant_code, refund_max, refund_daily_max,
      refund_max_by_currency, refund_daily_max_by_currency, rate_per_minute, networks,
      person, expires_at, replaces, chain_id)
    select name, ${hashKey(text)}, scopes, merchant_code, refund_max, refund_daily_max,
      refund_max_by_currency, refund_daily_max_by_currency, rate_per_minute, networks,
      person, now() + (expires_at - created_at), id, coalesce(chain_id, id)
    from api_keys where id = ${id}
    on conflict (replaces) do nothing
    returning id, expires_at::text as "newEndsAt"`
  if (!created) {
    const [successor] = await tx<{ id: string }[]>`select id from api_keys where replaces = ${id}`
    return { kind: 'already_rotated', successorId: successor?.id ?? '' }
  }
  const [updated] = await build(tx)
    .update(apiKeys)
    .set({
      expiresAt: sql`least(${apiKeys.expiresAt}, now() + ${graceS}::float8 * interval '1 second')`,
    })
    .where(eq(apiKeys.id, id))
    .returning({ oldEndsAt: sql<string>`${apiKeys.expiresAt}::text` })
  if (!updated) throw new Error('the key was deleted during its rotation')
  return {
    kind: 'rotated',
    created: { id: created.id, text },
    oldEndsAt: updated.oldEndsAt,
    newEndsAt: created.newEndsAt,
  }
}

/** @returns false if the key was already revoked */
export async function revokeKey(tx: Tx, id: string): Promise<boolean> {
  const revoked = await build(tx)
    .update(apiKeys)
    .set({ revokedAt: sql`now()` })
    .where(and(eq(apiKeys.id, id), isNull(apiKeys.revokedAt)))
    .returning({ id: apiKeys.id })
  return revoked.length > 0
}

/** Generates 256 random bits. The prefix lets secret scanners recognise a leaked key. */
function generateKeyText(): string {
  return `ipn_${randomBytes(32).toString('base64url')}`
}
