import { createHash } from 'node:crypto'
import type { auditEntries } from '../db/schema.ts'

/** The chain of the entries without an account. */
export const WITHOUT_ACCOUNT = '*'

/** What is hashed of an entry: every column, in this order. Existing chains depend on it. */
export const HASHED_COLUMNS = [
  'id',
  'at',
  'keyId',
  'actor',
  'operation',
  'merchantCode',
  'objectId',
  'requestId',
  'outcome',
] as const satisfies readonly (keyof typeof auditEntries.$inferSelect)[]

/** An entry as `selectEntry` reads it. */
export type HashedEntry = {
  id: number
  /** In UTC with microseconds and the era, as Postgres writes it; null for a time that is not finite. */
  at: string | null
} & Record<Exclude<(typeof HASHED_COLUMNS)[number], 'id' | 'at'>, string | null>

/** Selects the columns of an entry, as text that neither a session's settings nor the driver can change. */
export const selectEntry = (alias: string) => `${alias}.id,
  to_char(${alias}.at at time zone 'UTC', 'YYYY-MM-DD HH24:MI:SS.US BC') as at,
  ${alias}.key_id::text as "keyId", ${alias}.actor, ${alias}.operation, ${alias}.merchant_code as "merchantCode",
  ${alias}.object_id as "objectId", ${alias}.request_id as "requestId", ${alias}.outcome`

/** Returns the code of the chain that an entry belongs to. */
export const nameChain = ({ merchantCode }: Pick<HashedEntry, 'merchantCode'>) =>
  merchantCode ?? WITHOUT_ACCOUNT

/** The hash before the first link of a chain. */
export function computeFirstHash(chain: string): Buffer {
  return createHash('sha256')
    .update(JSON.stringify(['audit chain', chain]))
    .digest()
}

/**
 * Computes the hash of a link: SHA-256 over the hash before and the entry, which is a JSON array of the chain, the
 * position, and the columns in the order of `HASHED_COLUMNS`.
 */
export function computeLinkHash(
  before: Buffer,
  chain: string,
  position: number,
  entry: HashedEntry,
): Buffer {
  const text = JSON.stringify([chain, position, ...HASHED_COLUMNS.map((name) => entry[name])])
  return createHash('sha256').update(before).update(text).digest()
}
