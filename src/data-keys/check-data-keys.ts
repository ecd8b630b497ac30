import { createEncryption, deriveDataKeys } from '../platform/crypto/encryption.ts'
import { runInTransaction } from '../platform/postgres/transaction.ts'
import type { Sql, Tx } from '../platform/postgres/types.ts'
import { isReadable } from './is-readable.ts'
import {
  decodeRoots,
  type RootKeys,
  readStoredKeys,
  unwrapKeys,
  WRONG_KEY,
} from './open-data-keys.ts'

/**
 * Checks that `openDataKeys` would succeed, and writes nothing. A database whose tables an early release made, or none,
 * is checked as far as its tables go.
 * @returns whether anything is stored that needs the keys
 * @throws ConfigError when neither root key opens the data keys, or none opens what an earlier release encrypted
 */
export async function checkDataKeys(
  sql: Sql,
  rootKeys: RootKeys,
): Promise<'something' | 'nothing'> {
  return await runInTransaction(sql, (tx) => checkStored(tx, decodeRoots(rootKeys)))
}

async function checkStored(tx: Tx, roots: readonly Buffer[]): Promise<'something' | 'nothing'> {
  const [tables] = await tx<{ keys: boolean; values: boolean }[]>`
    select to_regclass('data_keys') is not null as keys,
      to_regclass('refunds') is not null and to_regclass('webhook_endpoints') is not null as values`
  const stored = tables?.keys ? await readStoredKeys(tx) : []
  if (stored.length > 0) {
    unwrapKeys(stored, roots)
    return 'something'
  }
  if (!tables?.values) return 'nothing'
  const [row] = await tx<{ used: boolean }[]>`
    select exists (select from refunds) or exists (select from webhook_endpoints) as used`
  const derived = roots.flatMap((root, index) => deriveDataKeys(root, index === 0))
  if (row?.used && !(await isReadable(tx, createEncryption(derived)))) throw WRONG_KEY
  return row?.used ? 'something' : 'nothing'
}
