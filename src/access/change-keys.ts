import { randomBytes } from 'node:crypto'
import type { Tx } from '../db/client.ts'
import { type ApiKey, hashKey, type Scope } from './keys.ts'

/** A key as it is asked for. Amounts are decimal strings. */
export type NewKey = {
  name: string
  scopes: readonly Scope[]
  merchantCode: string
  refundMax: string | null
  refundDailyMax: string | null
  ratePerMinute: number | null
  /** ISO 8601, null for no end. */
  expiresAt: string | null
}

/** The text of a key is known now and never again: only its hash is stored. */
export type MadeKey = { id: string; text: string }

export async function makeKey(tx: Tx, key: NewKey): Promise<MadeKey> {
  const text = makeText()
  const [row] = await tx<{ id: string }[]>`
    insert into api_keys (name, hash, scopes, merchant_code, refund_max, refund_daily_max,
      rate_per_minute, expires_at)
    values (${key.name}, ${hashKey(text)}, ${[...key.scopes]}, ${key.merchantCode}, ${key.refundMax},
      ${key.refundDailyMax}, ${key.ratePerMinute}, ${key.expiresAt})
    returning id`
  if (!row) throw new Error('no key was stored')
  return { id: row.id, text }
}

export type Rotation =
  | { kind: 'rotated'; made: MadeKey; oldEndsAt: string; newEndsAt: string | null }
  | { kind: 'ended' }
  | { kind: 'rotated_before'; by: string }

/**
 * Puts a new key in the place of a live one, which ends after the grace (or before, as it was to). The new
 * one may do the same, shares its caps and rate, and lives as long as the old one was made for.
 * A key is rotated once: two of a chain are live at most.
 * @param graceS how long both are good (seconds)
 */
export async function rotateKey(tx: Tx, id: string, graceS: number): Promise<Rotation> {
  const [old] = await tx<{ live: boolean }[]>`
    select (revoked_at is null and (expires_at is null or expires_at > now())) as live
    from api_keys where id = ${id} for update`
  if (!old?.live) return { kind: 'ended' }
  const text = makeText()
  const [made] = await tx<{ id: string; newEndsAt: string | null }[]>`
    insert into api_keys (name, hash, scopes, merchant_code, refund_max, refund_daily_max,
      rate_per_minute, expires_at, replaces, chain_id)
    select name, ${hashKey(text)}, scopes, merchant_code, refund_max, refund_daily_max,
      rate_per_minute, now() + (expires_at - created_at), id, coalesce(chain_id, id)
    from api_keys where id = ${id}
    on conflict (replaces) do nothing
    returning id, expires_at::text as "newEndsAt"`
  if (!made) {
    const [successor] = await tx<{ id: string }[]>`select id from api_keys where replaces = ${id}`
    return { kind: 'rotated_before', by: successor?.id ?? '' }
  }
  const [ended] = await tx<{ oldEndsAt: string }[]>`
    update api_keys
    set expires_at = least(expires_at, now() + ${graceS}::float8 * interval '1 second')
    where id = ${id} returning expires_at::text as "oldEndsAt"`
  if (!ended) throw new Error('the key is gone')
  const { newEndsAt } = made
  return {
    kind: 'rotated',
    made: { id: made.id, text },
    oldEndsAt: ended.oldEndsAt,
    newEndsAt,
  }
}

/** @returns false when it was revoked before */
export async function revokeKey(tx: Tx, id: string): Promise<boolean> {
  const { count } = await tx`
    update api_keys set revoked_at = now() where id = ${id} and revoked_at is null`
  return count > 0
}

export type ListedKey = Omit<ApiKey, 'chainId'> & {
  createdAt: string
  expiresAt: string | null
  revokedAt: string | null
  /** The key that it took the place of. */
  replaces: string | null
  state: 'live' | 'expired' | 'revoked'
}

/** Every key that was ever made, the newest first. */
export async function listKeys(tx: Tx): Promise<ListedKey[]> {
  return await tx<ListedKey[]>`
    select id, name, scopes, merchant_code as "merchantCode", refund_max as "refundMax",
      refund_daily_max as "refundDailyMax", rate_per_minute as "ratePerMinute",
      created_at::text as "createdAt", expires_at::text as "expiresAt", revoked_at::text as "revokedAt",
      replaces, case when revoked_at is not null then 'revoked'
        when expires_at <= now() then 'expired' else 'live' end as state
    from api_keys order by created_at desc, id`
}

/** 256 random bits; the prefix lets scanners for leaked secrets know it. */
function makeText(): string {
  return `ipn_${randomBytes(32).toString('base64url')}`
}
