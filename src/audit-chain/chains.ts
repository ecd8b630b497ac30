import { auditChains } from '../db/schema.ts'
import type { Encryption } from '../platform/crypto/encryption.ts'
import { pickColumns, rowSet } from '../platform/postgres/row-set.ts'
import type { Sql, Tx } from '../platform/postgres/types.ts'
import { computeFirstHash } from './entry-hash.ts'

/** The ends of a chain: the link that retention deleted last, and the newest. */
export type Chain = {
  merchantCode: string
  startPosition: number
  startHash: Buffer
  headPosition: number
  headHash: Buffer
}

/** A chain as it is stored, signed. `headAt` is a time as Postgres writes it. */
export type SignedChain = Chain & { headAt: string; mac: Buffer; macKeyId: string }

/** The newest link of a chain. */
export type LastLink = { position: number; hash: Buffer }

/** Why a chain must not be continued. */
export type BrokenChain =
  | 'not signed with a known key'
  | 'without its signed head'
  | 'not at its signed head'

/** Begins the text that is signed: no other text under the same key begins so. */
const SIGNED = 'audit chain '

export const createChain = (merchantCode: string): Chain => ({
  merchantCode,
  startPosition: 0,
  startHash: computeFirstHash(merchantCode),
  headPosition: 0,
  headHash: computeFirstHash(merchantCode),
})

function formatSigned({ startHash, headHash, ...chain }: Chain): string {
  const { merchantCode, startPosition, headPosition } = chain
  const hashes = [startHash.toString('hex'), headHash.toString('hex')]
  return SIGNED + JSON.stringify([merchantCode, startPosition, headPosition, ...hashes])
}

/** Whether this service signed the ends of the chain. */
export function isSigned(encryption: Encryption, chain: SignedChain): boolean {
  const { mac: value, macKeyId: keyId } = chain
  return encryption.checkFingerprint(formatSigned(chain), { value, keyId }) === 'same'
}

const CHAIN = `merchant_code as "merchantCode", start_position as "startPosition", start_hash as "startHash",
  head_position as "headPosition", head_hash as "headHash", head_at::text as "headAt", mac, mac_key_id as "macKeyId"`

/** Lists all chains, by their account. */
export async function listChains(sql: Sql | Tx): Promise<SignedChain[]> {
  return await sql<SignedChain[]>`
    select ${sql.unsafe(CHAIN)} from audit_chains order by merchant_code`
}

const CODES = pickColumns(auditChains, 'merchantCode')

/** A chain's stored row and its newest link; each may be missing. */
export type StoredChain = { chain: SignedChain | undefined; last: LastLink | undefined }

/** Locks some chains until the end of the transaction, and reads each with its newest link. */
export async function lockChains(
  tx: Tx,
  codes: readonly string[],
): Promise<Map<string, StoredChain>> {
  const given = () =>
    rowSet(
      tx,
      'k',
      CODES,
      codes.map((merchantCode) => ({ merchantCode })),
    )
  const chains = await tx<SignedChain[]>`
    select c.* from ${given()} cross join lateral (
      select ${tx.unsafe(CHAIN)} from audit_chains as c where c.merchant_code = k.merchant_code limit 1
      for update) as c`
  const links = await tx<(LastLink & { merchantCode: string })[]>`
    select k.merchant_code as "merchantCode", l.position, l.hash from ${given()} cross join lateral (
      select position, hash from audit_links as l
      where l.merchant_code >= k.merchant_code and l.merchant_code <= k.merchant_code
      order by l.merchant_code desc, l.position desc limit 1) as l`
  return new Map(
    codes.map((code) => [
      code,
      {
        chain: chains.find(({ merchantCode }) => merchantCode === code),
        last: links.find(({ merchantCode }) => merchantCode === code),
      },
    ]),
  )
}

/** Checks that a chain ends where it was signed: otherwise its links were changed, and must not be signed again. */
export function findBreak(
  encryption: Encryption,
  { chain, last }: StoredChain,
): BrokenChain | undefined {
  if (!chain) return last && 'without its signed head'
  if (!isSigned(encryption, chain)) return 'not signed with a known key'
  const position = last?.position ?? chain.startPosition
  const hash = last?.hash ?? chain.startHash
  const fits = position === chain.headPosition && hash.equals(chain.headHash)
  return fits ? undefined : 'not at its signed head'
}

/** Signs the ends of a chain and stores them. */
export async function storeChain(tx: Tx, encryption: Encryption, chain: Chain): Promise<void> {
  const { merchantCode, startPosition, startHash, headPosition, headHash } = chain
  const { value: mac, keyId } = encryption.fingerprint(formatSigned(chain))
  await tx`
    insert into audit_chains as c (merchant_code, start_position, start_hash, head_position, head_hash,
      head_at, mac, mac_key_id)
    values (${merchantCode}, ${startPosition}, ${startHash}, ${headPosition}, ${headHash}, now(), ${mac}, ${keyId})
    on conflict (merchant_code) do update set start_position = excluded.start_position,
      start_hash = excluded.start_hash, head_position = excluded.head_position, head_hash = excluded.head_hash,
      head_at = case when c.head_position = excluded.head_position then c.head_at else excluded.head_at end,
      mac = excluded.mac, mac_key_id = excluded.mac_key_id`
}
