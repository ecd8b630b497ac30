import { randomBytes, randomUUID } from 'node:crypto'
import { and, eq, isNull, sql } from 'drizzle-orm'
import { actors } from '../db/schema.ts'
import { build } from '../platform/postgres/drizzle.ts'
import type { Tx } from '../platform/postgres/types.ts'
import { type CapsByCurrency, hashKey, LIVE_SQL, type Scope, SETTING_CHAIN } from './keys.ts'
import { foldName } from './principal.ts'

/** The parameters of a new key. Amounts are decimal strings. */
export type NewKey = {
  name: string
  scopes: readonly Scope[]
  /** A merchant code, or `*` for all accounts. */
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

/** Creates a key. */
export async function createKey(tx: Tx, key: NewKey): Promise<CreatedKey> {
  const text = generateKeyText()
  const id = randomUUID()
  const { merchantCode, person, ...values } = key
  await build(tx)
    .insert(actors)
    .values({
      ...values,
      ...{ id, kind: 'key', chainId: id, person, hash: hashKey(text), merchants: [merchantCode] },
      foldedName: foldName(key.name),
      foldedPerson: person === null ? null : foldName(person),
      scopes: [...key.scopes],
      networks: key.networks && [...key.networks],
    })
  return { id, text }
}

export type Rotation =
  | { kind: 'rotated'; created: CreatedKey; oldEndsAt: string; newEndsAt: string | null }
  | { kind: 'not_live' }
  | { kind: 'of_setting' }
  | { kind: 'already_rotated'; successorId: string }

/**
 * Replaces a live key, which expires after the grace period, or at its own expiry if that is earlier. The new key
 * has the same permissions and lifetime, and shares the old one's caps and rate. A key can be rotated only
 * once, so at most two keys of a chain are live. The key of `API_KEY` changes with the setting, which another key would not.
 * @param graceS how long both keys are valid (seconds)
 */
export async function rotateKey(tx: Tx, id: string, graceS: number): Promise<Rotation> {
  const [old] = await tx<{ live: boolean; chainId: string }[]>`
    select ${tx.unsafe(LIVE_SQL)} as live, chain_id as "chainId" from actors as k
    where id = ${id} and kind = 'key' for update`
  if (!old?.live) return { kind: 'not_live' }
  if (old.chainId === SETTING_CHAIN) return { kind: 'of_setting' }
  const text = generateKeyText()
  const [created] = await tx<{ id: string; newEndsAt: string | null }[]>`
    insert into actors (id, kind, name, folded_name, hash, scopes, merchants, refund_max, refund_daily_max,
      refund_max_by_currency, refund_daily_max_by_currency, rate_per_minute, networks,
      person, folded_person, expires_at, replaces, chain_id)
    select ${randomUUID()}, kind, name, folded_name, ${hashKey(text)}, scopes, merchants, refund_max, refund_daily_max,
      refund_max_by_currency, refund_daily_max_by_currency, rate_per_minute, networks,
      person, folded_person, now() + (expires_at - created_at), id, chain_id
    from actors where id = ${id}
    on conflict (replaces) do nothing
    returning id, expires_at::text as "newEndsAt"`
  if (!created) {
    const [successor] = await tx<{ id: string }[]>`select id from actors where replaces = ${id}`
    return { kind: 'already_rotated', successorId: successor?.id ?? '' }
  }
  const [updated] = await build(tx)
    .update(actors)
    .set({
      expiresAt: sql`least(${actors.expiresAt}, now() + ${graceS}::float8 * interval '1 second')`,
    })
    .where(eq(actors.id, id))
    .returning({ oldEndsAt: sql<string>`${actors.expiresAt}::text` })
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
    .update(actors)
    .set({ endedAt: sql`now()` })
    .where(and(eq(actors.id, id), isNull(actors.endedAt)))
    .returning({ id: actors.id })
  return revoked.length > 0
}

/** Generates 256 random bits. The prefix lets secret scanners recognise a leaked key. */
function generateKeyText(): string {
  return `ipn_${randomBytes(32).toString('base64url')}`
}
