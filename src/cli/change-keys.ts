import { userInfo } from 'node:os'
import { type Asker, recordWrite } from '../access/audit.ts'
import {
  type ListedKey,
  listKeys,
  makeKey,
  type NewKey,
  revokeKey,
  rotateKey,
} from '../access/change-keys.ts'
import { EVERY_MERCHANT, type Scope } from '../access/keys.ts'
import { type Sql, type Tx, toIso } from '../db/client.ts'
import { runInTransaction } from '../db/transaction.ts'
import { UsageError } from './usage-error.ts'

/** What `keys create` was asked for. */
export type Wanted = {
  scopes: Scope[]
  merchant: string
  refundMax?: string
  refundDailyMax?: string
  rate?: number
  expires?: string
}

/** @throws UsageError when there is no such account */
export async function create(sql: Sql, name: string, options: Wanted) {
  return await runInTransaction(sql, async (tx) => {
    await requireMerchant(tx, options.merchant)
    const wanted: NewKey = {
      name,
      scopes: options.scopes,
      merchantCode: options.merchant,
      refundMax: options.refundMax ?? null,
      refundDailyMax: options.refundDailyMax ?? null,
      ratePerMinute: options.rate ?? null,
      expiresAt: options.expires ?? null,
    }
    const { id, text: key } = await makeKey(tx, wanted)
    await record(tx, 'keys create', options.merchant, id)
    return { id, key, ...wanted }
  })
}

/** @throws UsageError when there is no such key, or it has ended or was rotated before */
export async function rotate(sql: Sql, ref: string, graceS: number) {
  return await runInTransaction(sql, async (tx) => {
    const { id: oldId, merchantCode } = await findKey(tx, ref)
    const rotation = await rotateKey(tx, oldId, graceS)
    if (rotation.kind === 'ended') {
      throw new UsageError('the key has ended, so nothing can take its place: make a new one')
    }
    if (rotation.kind === 'rotated_before') {
      throw new UsageError(`the key was rotated before: its successor is ${rotation.by}`)
    }
    const { id, text: key } = rotation.made
    await record(tx, 'keys rotate', merchantCode, oldId)
    await record(tx, 'keys rotate', merchantCode, id)
    return { id, key, oldId, oldEndsAt: toIso(rotation.oldEndsAt) }
  })
}

/** @throws UsageError when there is no such key */
export async function revoke(sql: Sql, ref: string) {
  return await runInTransaction(sql, async (tx) => {
    const { id, merchantCode } = await findKey(tx, ref)
    const wasLive = await revokeKey(tx, id)
    if (wasLive) await record(tx, 'keys revoke', merchantCode, id)
    return { id, wasLive }
  })
}

async function record(tx: Tx, operation: string, merchantCode: string, objectId: string) {
  const who: Asker = { id: null, name: `cli (${userInfo().username})`, requestId: null }
  await recordWrite(tx, who, { operation, merchantCode, objectId })
}

async function requireMerchant(tx: Tx, code: string): Promise<void> {
  if (code === EVERY_MERCHANT) return
  const rows = await tx<{ code: string }[]>`
    select merchant_code as code from merchant_accounts order by merchant_code`
  const known = rows.map((row) => row.code)
  if (known.includes(code)) return
  throw new UsageError(`no merchant account ${code}; there is ${known.join(', ') || 'none yet'}`)
}

/** @param ref an id, or a name; it could be the key itself by mistake, and is never repeated */
async function findKey(tx: Tx, ref: string): Promise<ListedKey> {
  const all = await listKeys(tx)
  const byId = all.find(({ id }) => id === ref.toLowerCase())
  const [byName, second] = all.filter(({ name, state }) => name === ref && state === 'live')
  if (second && !byId) throw new UsageError('several live keys have this name: give the id of one')
  const found = byId ?? byName
  if (!found) throw new UsageError('no key has this id, and no live key this name; see keys list')
  return found
}
