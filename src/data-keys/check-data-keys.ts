import { runInTransaction } from '../platform/postgres/transaction.ts'
import type { Sql, Tx } from '../platform/postgres/types.ts'
import { decodeRoots, type RootKeys, readStoredKeys, unwrapKeys } from './open-data-keys.ts'

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
