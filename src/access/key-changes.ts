import { randomBytes, randomUUID } from 'node:crypto'
import { actors } from '../db/schema.ts'
import { build } from '../platform/postgres/drizzle.ts'
import type { Tx } from '../platform/postgres/types.ts'
import { type ApiKey, hashKey, LIVE_SQL, type Scope, SETTING_CHAIN } from './keys.ts'
import { foldName } from './principal.ts'

type Actor = typeof actors.$inferSelect

/** Amounts are decimal strings. */
export type NewKey = Omit<ApiKey, 'id' | 'scopes' | 'merchants' | 'chainId' | 'principal'> &
  Pick<Actor, 'person' | 'expiresAt'> & {
    scopes: readonly Scope[]
    /** A merchant code, or `*` for all accounts. */
    merchantCode: string
  }

/** The text cannot be retrieved later: only its hash is stored. */
type CreatedKey = { id: string; text: string }

export async function createKey(tx: Tx, key: NewKey): Promise<CreatedKey> {
  const text = generateKeyText()
  const id = randomUUID()
  const { merchantCode, scopes, ...values } = key
  await build(tx)
    .insert(actors)
    .values({
      ...{ ...values, id, kind: 'key', chainId: id, hash: hashKey(text) },
      ...{ merchants: [merchantCode], scopes: [...scopes] },
      foldedName: foldName(key.name),
      foldedPerson: key.person && foldName(key.person),
    })
  return { id, text }
}

type Rotation =
  | { kind: 'rotated'; created: CreatedKey; oldEndsAt: string; newEndsAt: string | null }
  | { kind: 'not_live' | 'of_setting' }
  | { kind: 'already_rotated'; successorId: string }

const INHERITED = `kind, name, folded_name, scopes, merchants, refund_max, refund_daily_max, refund_max_by_currency,
  refund_daily_max_by_currency, rate_per_minute, networks, person, folded_person, chain_id`

/**
 * Replaces a live key, which expires after the grace period or at its own expiry, whichever is earlier. The new key
 * has the same permissions and lifetime, and shares the caps and the rate of the old one. A key can be rotated only
 * once, so at most two keys of a chain are live. The key of `API_KEY` only changes with the setting.
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
    with old as materialized (
      select ${tx.unsafe(INHERITED)}, id, now() + (expires_at - created_at) as ends_at from actors where id = ${id})
    insert into actors (${tx.unsafe(INHERITED)}, id, hash, expires_at, replaces)
    select ${tx.unsafe(INHERITED)}, ${randomUUID()}, ${hashKey(text)}, ends_at, id from old
    on conflict (replaces) do nothing
    returning id, expires_at as "newEndsAt"`
  if (!created) {
    const [successor] = await tx<{ id: string }[]>`select id from actors where replaces = ${id}`
    return { kind: 'already_rotated', successorId: successor?.id ?? '' }
  }
  const [updated] = await tx<{ oldEndsAt: string }[]>`
    update actors set expires_at = least(expires_at, now() + ${graceS}::float8 * interval '1 second')
    where id = ${id} returning expires_at as "oldEndsAt"`
  if (!updated) throw new Error('the key was deleted during its rotation')
  const { id: newId, newEndsAt } = created
  return { kind: 'rotated', created: { id: newId, text }, newEndsAt, ...updated }
}

/** @returns false if the key was already revoked */
export async function revokeKey(tx: Tx, id: string): Promise<boolean> {
  const { count } = await tx`
    update actors set ended_at = now() where id = ${id} and ended_at is null`
  return count > 0
}

/** Generates a text with 256 random bits. The prefix lets secret scanners recognise a leaked key. */
const generateKeyText = () => `ipn_${randomBytes(32).toString('base64url')}`
