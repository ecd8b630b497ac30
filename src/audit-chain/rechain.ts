import { AUDIT_CHAIN_LOCK } from '../db/locks.ts'
import type { Encryption } from '../platform/crypto/encryption.ts'
import type { Tx } from '../platform/postgres/types.ts'
import { createChain, lockChains, storeChain } from './chains.ts'

/**
 * Drops the links of a chain, so that the pass chains the account's entries anew, as they are now. The positions go
 * on where the old chain ended.
 * @returns the position that the new chain starts after; undefined if there is no such chain
 */
export async function rechain(
  tx: Tx,
  encryption: Encryption,
  merchantCode: string,
): Promise<number | undefined> {
  await tx`select pg_advisory_xact_lock(${AUDIT_CHAIN_LOCK})`
  const { chain, last } = (await lockChains(tx, [merchantCode])).get(merchantCode) ?? {}
  if (!chain && !last) return undefined
  const position = Math.max(chain?.headPosition ?? 0, last?.position ?? 0)
  const fresh = createChain(merchantCode)
  await tx`delete from audit_links where merchant_code = ${merchantCode}`
  await storeChain(tx, encryption, { ...fresh, startPosition: position, headPosition: position })
  await tx`update audit_progress set done_up_to = 0, next_up_to = 0`
  return position
}
