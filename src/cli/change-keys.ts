import { userInfo } from 'node:os'
import { type Actor, recordWrite } from '../access/audit.ts'
import { createKey, type NewKey, revokeKey, rotateKey } from '../access/change-keys.ts'
import { EVERY_MERCHANT, type Scope } from '../access/keys.ts'
import { type ListedKey, listKeys } from '../access/list-keys.ts'
import { openDataKeys, type RootKeys } from '../db/data-keys.ts'
import { type Resealed, resealData } from '../maintenance/reseal.ts'
import { toIso } from '../platform/postgres/row-set.ts'
import { runInTransaction } from '../platform/postgres/transaction.ts'
import type { Sql, Tx } from '../platform/postgres/types.ts'
import { createLog } from '../platform/telemetry/log.ts'
import { endEndpoints } from '../webhooks/end-endpoints.ts'
import type { Cap } from './options.ts'
import { UsageError } from './usage-error.ts'

/** The options of `keys create`. */
export type CreateKeyOptions = {
  scopes: Scope[]
  merchant: string
  refundMax?: Cap
  refundDailyMax?: Cap
  rate?: number
  person?: string
  expires?: string
  network?: string[]
}

/** Creates a key. @throws UsageError if the account does not exist */
export async function createNamedKey(sql: Sql, name: string, options: CreateKeyOptions) {
  return await runInTransaction(sql, async (tx) => {
    await requireMerchant(tx, options.merchant)
    const newKey: NewKey = {
      name,
      scopes: options.scopes,
      merchantCode: options.merchant,
      refundMax: getAmount(options.refundMax),
      refundDailyMax: getAmount(options.refundDailyMax),
      refundMaxByCurrency: getByCurrency(options.refundMax),
      refundDailyMaxByCurrency: getByCurrency(options.refundDailyMax),
      ratePerMinute: options.rate ?? null,
      networks: options.network ?? null,
      person: options.person ?? null,
      expiresAt: options.expires ?? null,
    }
    const { id, text: key, person } = await createKey(tx, newKey)
    await recordChange(tx, 'keys create', options.merchant, id)
    return { id, key, ...newKey, person }
  })
}

const getAmount = (cap: Cap | undefined) => (typeof cap === 'string' ? cap : null)
const getByCurrency = (cap: Cap | undefined) => (typeof cap === 'object' ? cap : null)

/** Rotates a key. @throws UsageError if the key does not exist, is not live or was already rotated */
export async function rotateNamedKey(sql: Sql, ref: string, graceS: number) {
  return await runInTransaction(sql, async (tx) => {
    const { id: oldId, merchantCode } = await findKey(tx, ref)
    const rotation = await rotateKey(tx, oldId, graceS)
    if (rotation.kind === 'not_live') {
      throw new UsageError('the key is expired or revoked and cannot be rotated; create a new one')
    }
    if (rotation.kind === 'already_rotated') {
      throw new UsageError(`the key was already rotated; its successor is ${rotation.successorId}`)
    }
    const { id, text: key } = rotation.created
    await recordChange(tx, 'keys rotate', merchantCode, oldId)
    await recordChange(tx, 'keys rotate', merchantCode, id)
    return { id, key, oldId, oldEndsAt: toIso(rotation.oldEndsAt) }
  })
}

/** Revokes a key, and ends the webhook endpoints that belong to it. @throws UsageError if the key does not exist */
export async function revokeNamedKey(sql: Sql, ref: string) {
  return await runInTransaction(sql, async (tx) => {
    const { id, merchantCode } = await findKey(tx, ref)
    const wasLive = await revokeKey(tx, id)
    if (wasLive) await recordChange(tx, 'keys revoke', merchantCode, id)
    return { id, wasLive, endpoints: await endEndpoints(tx, id) }
  })
}

/** Encrypts everything stored again, under the current root key. @throws ConfigError for a key that cannot decrypt the data keys */
export async function resealStoredData(sql: Sql, roots: RootKeys): Promise<Resealed> {
  const done = await resealData(sql, await openDataKeys(sql, roots))
  await runInTransaction(sql, (tx) => recordChange(tx, 'keys reseal', EVERY_MERCHANT, null))
  return done
}

/** The command line's own output is no log: its entries leave the database with their checkpoint. */
export const NO_LOG = createLog('silent')

/** Records a change that was made on the command line, by the user of the operating system. */
export async function recordChange(
  tx: Tx,
  operation: string,
  merchantCode: string | null,
  objectId: string | null,
) {
  const actor: Actor = { id: null, name: `cli (${userInfo().username})`, requestId: null }
  await recordWrite(tx, NO_LOG, actor, { operation, merchantCode, objectId })
}

/** @throws UsageError if the account does not exist */
export async function requireMerchant(tx: Tx, code: string): Promise<void> {
  if (code === EVERY_MERCHANT) return
  const rows = await tx<{ code: string }[]>`
    select merchant_code as code from merchant_accounts order by merchant_code`
  const known = rows.map((row) => row.code)
  if (known.includes(code)) return
  throw new UsageError(
    `unknown merchant account ${code}; known accounts: ${known.join(', ') || 'none yet'}`,
  )
}

/** @param ref an id or a name. It is never printed: by mistake it could be the key itself. */
async function findKey(tx: Tx, ref: string): Promise<ListedKey> {
  const all = await listKeys(tx)
  const byId = all.find(({ id }) => id === ref.toLowerCase())
  const [byName, second] = all.filter(({ name, state }) => name === ref && state === 'live')
  if (second && !byId)
    throw new UsageError('several live keys have this name; use the id of one of them')
  const found = byId ?? byName
  if (!found)
    throw new UsageError('no key has this id and no live key has this name; see keys list')
  return found
}
