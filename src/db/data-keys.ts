import { ConfigError } from '../config/environment.ts'
import { DomainError } from '../errors.ts'
import { shareRuns } from '../platform/concurrency/timing.ts'
import {
  createDataKey,
  createEncryption,
  createKeyWrap,
  type DataKey,
} from '../platform/crypto/encryption.ts'
import { build } from '../platform/postgres/drizzle.ts'
import { runInTransaction } from '../platform/postgres/transaction.ts'
import type { Sql, Tx } from '../platform/postgres/types.ts'
import { DATA_KEYS_LOCK } from './names.ts'
import { dataKeys } from './schema.ts'

/** The root keys from the settings, each 32 bytes in Base64. */
type RootKeys = { current: string; previous?: string | undefined }

export type DataKeys = ReturnType<typeof keepKeys>

export const WRONG_KEY = new ConfigError([
  'DATA_ENCRYPTION_KEY is not the key that this database was written with; set that key, or beside a new one DATA_ENCRYPTION_KEY_PREVIOUS=<that key>',
])

/** The running service does not have this root key yet, so its processes could not open a key wrapped with it. */
const NOT_CURRENT = new ConfigError([
  'DATA_ENCRYPTION_KEY is not the key that the service runs with; set the same one, or start the service with this key first',
])

/** How long after its creation a key comes into use (ms). Every process rereads the keys several times before that. */
const ACTIVE_AFTER_MS = 60_000

/** How many ids that do not exist are remembered. Ids beyond these are not looked up at all. */
const MOST_MISSED = 1_000

/**
 * Reads the data keys, and wraps those that are still under the previous root key with the current one. A database
 * without keys gets a random one for each purpose. Processes that start together run this one after another.
 * @throws ConfigError when neither root key opens the data keys
 */
export async function openDataKeys(sql: Sql, rootKeys: RootKeys): Promise<DataKeys> {
  const roots = openRoots(rootKeys)
  const keys = await runInTransaction(sql, async (tx) => {
    await tx`select pg_advisory_xact_lock(${tx.unsafe(DATA_KEYS_LOCK)})`
    const stored = await readStoredKeys(tx)
    if (stored.length === 0) {
      await storeKeys(tx, roots, [createDataKey('seal'), createDataKey('fingerprint')])
      return (await readStoredKeys(tx)).map((one) => openKey(one, roots))
    }
    const opened = stored.map((one) => openKey(one, roots))
    for (const key of opened.filter(({ isCurrent }) => !isCurrent)) {
      await tx`
        update data_keys set wrapped = ${roots[0].wrap(key)}
        where purpose = ${key.purpose} and id = ${key.id}`
    }
    return opened
  })
  return keepKeys(sql, roots, keys)
}

/**
 * Reads the data keys like `openDataKeys`, but writes nothing. Before the first start there are none.
 * @throws ConfigError when neither root key opens the data keys
 */
export async function readDataKeys(sql: Sql, rootKeys: RootKeys): Promise<readonly DataKey[]> {
  const roots = openRoots(rootKeys)
  const [table] = await sql<{ exists: boolean }[]>`
    select to_regclass('data_keys') is not null as exists`
  const stored = table?.exists ? await readStoredKeys(sql) : []
  return stored.map((one) => openKey(one, roots))
}

/**
 * Adds a key that seals new values once `ACTIVE_AFTER_MS` have passed. Older keys still open what they sealed.
 * @param record what belongs in the same commit
 * @returns a function that tells whether the key is in use
 * @throws ConfigError when the processes of the service may not have the root key yet
 */
export async function addSealKey(
  sql: Sql,
  rootKeys: RootKeys,
  record: (tx: Tx) => Promise<void> = async () => {},
): Promise<() => Promise<boolean>> {
  const key = createDataKey('seal')
  const roots = openRoots(rootKeys)
  await runInTransaction(sql, async (tx) => {
    await tx`select pg_advisory_xact_lock(${tx.unsafe(DATA_KEYS_LOCK)})`
    const stored = await readStoredKeys(tx)
    if (!stored.every((one) => openKey(one, roots).isCurrent)) throw NOT_CURRENT
    await storeKeys(tx, roots, [key])
    await record(tx)
  })
  return async () => {
    const stored = await readStoredKeys(sql)
    return stored.some(({ id, activeAt }) => id === key.id && activeAt <= performance.now())
  }
}

function keepKeys(sql: Sql, roots: Roots, opened: readonly DataKey[]) {
  let keys = opened
  const missed = new Set<string>()

  /** Reads keys that other processes have added. @throws database errors */
  const reread = shareRuns(async () => {
    await keepStored(sql, roots[0], keys)
    const stored = await readStoredKeys(sql)
    // A key that was since wrapped with a root key that this process lacks is still known from before.
    keys = stored.flatMap((one) => {
      const key = unwrap(one, roots)?.key ?? keys.find(({ id }) => id === one.id)?.key
      return key ? { ...one, key } : []
    })
  }, 0)

  /** Rereads the keys for an unknown id; until that is done, whoever asks is told to retry. @throws DomainError */
  function seek(id: string): void {
    if (missed.has(id) || missed.size >= MOST_MISSED) return
    reread().then(
      () => missed.add(id),
      () => {},
    )
    throw new DomainError('unavailable', 'A data key is being read; retry in a moment')
  }

  return { ...createEncryption(() => keys, seek), reread }
}

/** Stores keys that the database lost in a restore or failover: what they sealed since could not be opened any more. */
async function keepStored(sql: Sql, root: KeyWrap, known: readonly DataKey[]): Promise<void> {
  const stored = new Set((await readStoredKeys(sql)).map(({ id }) => id))
  for (const key of known.filter(({ id }) => !stored.has(id))) {
    await sql`
      insert into data_keys (purpose, id, wrapped) values (${key.purpose}, ${key.id}, ${root.wrap(key)})
      on conflict do nothing`
  }
}

type Roots = readonly [KeyWrap, ...KeyWrap[]]
type KeyWrap = ReturnType<typeof createKeyWrap>
type StoredKey = Omit<DataKey, 'key'> & { wrapped: Buffer }

function openRoots({ current, previous }: RootKeys): Roots {
  const open = (text: string) => createKeyWrap(Buffer.from(text, 'base64'))
  return [open(current), ...(previous === undefined ? [] : [open(previous)])]
}

async function readStoredKeys(sql: Sql | Tx): Promise<StoredKey[]> {
  const rows = await sql<(Omit<StoredKey, 'activeAt'> & { ageMs: number })[]>`
    select purpose, id, wrapped,
      (extract(epoch from clock_timestamp() - created_at) * 1000)::float8 as "ageMs"
    from data_keys order by created_at, id`
  const now = performance.now()
  return rows.map(({ ageMs, ...one }) => ({ ...one, activeAt: now - ageMs + ACTIVE_AFTER_MS }))
}

function unwrap({ wrapped, ...one }: StoredKey, roots: Roots) {
  const keys = roots.map((root) => root.unwrap(wrapped, one))
  const key = keys.find((found) => found !== undefined)
  return key && { ...one, key, isCurrent: key === keys[0] }
}

/** @throws ConfigError when no root key opens it */
function openKey(stored: StoredKey, roots: Roots): DataKey & { isCurrent: boolean } {
  const key = unwrap(stored, roots)
  if (!key) throw WRONG_KEY
  return key
}

async function storeKeys(tx: Tx, [root]: Roots, keys: readonly DataKey[]): Promise<void> {
  const rows = keys.map((key) => ({ purpose: key.purpose, id: key.id, wrapped: root.wrap(key) }))
  await build(tx).insert(dataKeys).values(rows)
}
