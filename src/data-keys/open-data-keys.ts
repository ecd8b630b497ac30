import { ConfigError } from '../config/config-error.ts'
import { DATA_KEYS_LOCK } from '../db/locks.ts'
import { dataKeys } from '../db/schema.ts'
import {
  createEncryption,
  createKeyWrap,
  type DataKey,
  deriveDataKeys,
  type Encryption,
} from '../platform/crypto/encryption.ts'
import { build } from '../platform/postgres/query-builder.ts'
import { runInTransaction } from '../platform/postgres/transaction.ts'
import type { Sql, Tx } from '../platform/postgres/types.ts'
import { isReadable } from './is-readable.ts'

/** The root keys from the settings, 32 bytes in Base64 each. */
export type RootKeys = { current: string; previous?: string | undefined }

const WRONG_KEY = new ConfigError([
  'DATA_ENCRYPTION_KEY is not the key that this database was written with; set that key, or beside a new one DATA_ENCRYPTION_KEY_PREVIOUS=<that key>',
])

/**
 * Reads the data keys of the database, and wraps those under the previous root key with the current one. In a
 * database without data keys it stores those that earlier releases derived from the root key. Processes that
 * start together run this one after the other.
 * @throws ConfigError when neither root key opens them, or none opens what an earlier release encrypted
 */
export async function openDataKeys(sql: Sql, { current, previous }: RootKeys): Promise<Encryption> {
  const roots = [current, ...(previous === undefined ? [] : [previous])].map((key) =>
    Buffer.from(key, 'base64'),
  )
  return await runInTransaction(sql, async (tx) => {
    await tx`select pg_advisory_xact_lock(${DATA_KEYS_LOCK})`
    const stored = await tx<StoredKey[]>`select purpose, id, wrapped, active from data_keys`
    const opened = stored.length > 0 ? await unwrapKeys(tx, stored, roots) : []
    const known = new Set(opened.map(({ id }) => id))
    // A key that was replaced before keys were stored may still have written data.
    const derived = roots
      .flatMap((root, index) => deriveDataKeys(root, stored.length === 0 && index === 0))
      .filter(({ id, active }) => active || (id !== deriveId(roots[0]) && !known.has(id)))
    await storeKeys(tx, derived, roots)
    const encryption = createEncryption([...opened, ...derived])
    if (stored.length === 0 && !(await isReadable(tx, encryption))) throw WRONG_KEY
    return encryption
  })
}

type StoredKey = Omit<DataKey, 'key'> & { wrapped: Buffer }

const deriveId = (root: Buffer | undefined) => root && deriveDataKeys(root, false)[0]?.id

async function unwrapKeys(
  tx: Tx,
  stored: readonly StoredKey[],
  roots: readonly Buffer[],
): Promise<DataKey[]> {
  const [current, ...others] = roots.map(createKeyWrap)
  if (!current) throw new Error('there is no root key')
  const opened: DataKey[] = []
  for (const { wrapped, ...one } of stored) {
    const known = current.unwrap(wrapped, one)
    const key = known ?? others.map((wrap) => wrap.unwrap(wrapped, one)).find((found) => found)
    if (!key) throw WRONG_KEY
    opened.push({ ...one, key })
    if (known) continue
    await tx`
      update data_keys set wrapped = ${current.wrap({ ...one, key })}
      where purpose = ${one.purpose} and id = ${one.id}`
  }
  return opened
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
