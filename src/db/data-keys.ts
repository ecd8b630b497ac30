import { ConfigError } from '../config/environment.ts'
import {
  createEncryption,
  createKeyWrap,
  type DataKey,
  deriveDataKeys,
  type Encryption,
} from '../platform/crypto/encryption.ts'
import { build } from '../platform/postgres/drizzle.ts'
import { runInTransaction } from '../platform/postgres/transaction.ts'
import type { Sql, Tx } from '../platform/postgres/types.ts'
import { DATA_KEYS_LOCK } from './locks.ts'
import { dataKeys } from './schema.ts'

/** The root keys from the settings, 32 bytes in Base64 each. */
export type RootKeys = { current: string; previous?: string | undefined }

/** Neither root key belongs to the database. */
export const WRONG_KEY = new ConfigError([
  'DATA_ENCRYPTION_KEY is not the key that this database was written with; set that key, or beside a new one DATA_ENCRYPTION_KEY_PREVIOUS=<that key>',
])

/**
 * Reads the data keys of the database, and wraps those under the previous root key with the current one. Each root
 * key has an encryption key derived from it, which is stored too: new values are encrypted with that of the current
 * root. So a process that has both roots in its settings reads what any other writes, whichever root that one
 * calls current. A database without data keys also gets the fingerprint keys derived from them.
 * Processes that start together run this one after the other.
 * @throws ConfigError when neither root key opens them
 */
export async function openDataKeys(sql: Sql, rootKeys: RootKeys): Promise<Encryption> {
  const roots = decodeRoots(rootKeys)
  return await runInTransaction(sql, async (tx) => {
    await tx`select pg_advisory_xact_lock(${DATA_KEYS_LOCK})`
    const stored = await readStoredKeys(tx)
    const unwrapped = unwrapKeys(stored, roots)
    await rewrapKeys(tx, unwrapped, roots)
    const opened = unwrapped.map(({ dataKey }) => dataKey)
    const derived = deriveMissing(roots, opened)
    await storeKeys(tx, derived, roots)
    const sealing = deriveId(roots[0])
    await activateSealing(tx, sealing)
    return createEncryption(
      [...opened, ...derived].map((one) =>
        one.purpose === 'seal' ? { ...one, active: one.id === sealing } : one,
      ),
    )
  })
}

/** Decodes the root keys, the current one first. */
export function decodeRoots({ current, previous }: RootKeys): Buffer[] {
  const keys = previous === undefined ? [current] : [current, previous]
  return keys.map((key) => Buffer.from(key, 'base64'))
}

type StoredKey = Omit<DataKey, 'key'> & { wrapped: Buffer }

const deriveId = (root: Buffer | undefined) => root && deriveDataKeys(root, false)[0]?.id

/**
 * Derives the keys that are not stored. Fingerprints of the previous root are only compared; those of the current one
 * are made with the key that is active, unless there is none.
 */
function deriveMissing(roots: readonly Buffer[], opened: readonly DataKey[]): DataKey[] {
  const known = new Set(opened.map(({ id, purpose }) => `${purpose} ${id}`))
  const isNew = opened.length === 0
  return roots
    .flatMap((root, index) =>
      deriveDataKeys(root, false).map((one) => ({
        ...one,
        active: one.purpose === 'fingerprint' && isNew && index === 0,
        isNeeded: one.purpose === 'seal' || isNew || index > 0,
      })),
    )
    .filter(({ id, purpose, isNeeded }) => isNeeded && !known.has(`${purpose} ${id}`))
    .map(({ isNeeded: _, ...one }) => one)
}

/** Marks the key that this process encrypts with. First no key is active: at most one may be. */
async function activateSealing(tx: Tx, id: string | undefined): Promise<void> {
  await tx`update data_keys set active = false where purpose = 'seal' and active and id <> ${id ?? ''}`
  await tx`update data_keys set active = true where purpose = 'seal' and not active and id = ${id ?? ''}`
}

/** A data key that was opened; `isCurrent`: it is wrapped with the current root key. */
type UnwrappedKey = { dataKey: DataKey; isCurrent: boolean }

/** Reads the data keys as they are stored. */
export async function readStoredKeys(tx: Tx): Promise<StoredKey[]> {
  return await tx<StoredKey[]>`select purpose, id, wrapped, active from data_keys`
}

/** Opens the stored keys. @throws ConfigError when no root key opens one of them */
export function unwrapKeys(stored: readonly StoredKey[], roots: readonly Buffer[]): UnwrappedKey[] {
  const [current, ...others] = roots.map(createKeyWrap)
  if (!current) throw new Error('there is no root key')
  return stored.map(({ wrapped, ...one }) => {
    const known = current.unwrap(wrapped, one)
    const key = known ?? others.map((wrap) => wrap.unwrap(wrapped, one)).find((found) => found)
    if (!key) throw WRONG_KEY
    return { dataKey: { ...one, key }, isCurrent: known !== undefined }
  })
}

async function rewrapKeys(
  tx: Tx,
  unwrapped: readonly UnwrappedKey[],
  [root]: readonly Buffer[],
): Promise<void> {
  if (!root) throw new Error('there is no root key')
  const { wrap } = createKeyWrap(root)
  for (const { dataKey } of unwrapped.filter(({ isCurrent }) => !isCurrent)) {
    await tx`
      update data_keys set wrapped = ${wrap(dataKey)}
      where purpose = ${dataKey.purpose} and id = ${dataKey.id}`
  }
}

async function storeKeys(
  tx: Tx,
  keys: readonly DataKey[],
  [root]: readonly Buffer[],
): Promise<void> {
  if (!root || keys.length === 0) return
  const { wrap } = createKeyWrap(root)
  const rows = keys.map(({ purpose, id, active, ...one }) => {
    return { purpose, id, active, wrapped: wrap({ purpose, id, active, ...one }) }
  })
  await build(tx).insert(dataKeys).values(rows)
}

/**
 * Checks that `openDataKeys` would succeed, and writes nothing. A database without tables has no data keys.
 * @returns whether anything is stored that needs the keys
 * @throws ConfigError when neither root key opens the data keys
 */
export async function checkDataKeys(
  sql: Sql,
  rootKeys: RootKeys,
): Promise<'something' | 'nothing'> {
  return await runInTransaction(sql, (tx) => checkStored(tx, decodeRoots(rootKeys)))
}

async function checkStored(tx: Tx, roots: readonly Buffer[]): Promise<'something' | 'nothing'> {
  const [table] = await tx<{ exists: boolean }[]>`
    select to_regclass('data_keys') is not null as exists`
  const stored = table?.exists ? await readStoredKeys(tx) : []
  unwrapKeys(stored, roots)
  return stored.length > 0 ? 'something' : 'nothing'
}
