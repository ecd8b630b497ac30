import type { Config } from '../config/config.ts'
import type { Context } from '../context.ts'
import { runInTransaction } from '../platform/postgres/transaction.ts'
import type { Tx } from '../platform/postgres/types.ts'
import { findBreak, lockChains, type SignedChain, storeChain } from './chains.ts'
import { computeLinkHash } from './entry-hash.ts'
import { readLinks } from './read-links.ts'

type RetentionContext = Pick<Context, 'sql' | 'log' | 'encryption'> & {
  config: Pick<Config, 'RETENTION_DAYS'>
}

/** Links of one chain per commit. */
const BATCH = 1_000

/**
 * Deletes audit entries older than `RETENTION_DAYS`: of each chain a batch from its beginning, up to the first younger
 * one, and never the head. The chain's signed start moves with it, so what is left can still be verified. Entries that
 * do not fit their chain are not deleted: a changed time must not make evidence disappear.
 * @returns the number of entries deleted; 0 when no expired one was left
 */
export async function deleteExpiredEntries(ctx: RetentionContext): Promise<number> {
  const expired = await ctx.sql<{ code: string }[]>`
    select c.merchant_code as code from audit_chains as c cross join lateral (
      select entry_id from audit_links as l
      where l.merchant_code = c.merchant_code and l.position = c.start_position + 1 limit 1) as l
    cross join lateral (select at from audit_entries as e where e.id = l.entry_id limit 1) as e
    where c.start_position + 1 < c.head_position
      and e.at < now() - ${ctx.config.RETENTION_DAYS} * interval '1 day'`
  let deleted = 0
  for (const { code } of expired) {
    deleted += await runInTransaction(ctx.sql, (tx) => deleteBatch(ctx, tx, code))
  }
  return deleted
}

async function deleteBatch(ctx: RetentionContext, tx: Tx, code: string): Promise<number> {
  const stored = (await lockChains(tx, [code])).get(code)
  if (!stored?.chain || findBreak(ctx.encryption, stored)) return 0
  const { entries, position, hash } = await findGenuine(ctx, tx, stored.chain)
  if (entries.length === 0) return 0
  await tx`delete from audit_entries where id = any(${entries})`
  await tx`delete from audit_links where merchant_code = ${code} and position <= ${position}`
  await storeChain(tx, ctx.encryption, {
    ...stored.chain,
    startPosition: position,
    startHash: hash,
  })
  return entries.length
}

/** Reads the expired entries at the beginning of a chain, as far as they fit it. */
async function findGenuine({ log, config }: RetentionContext, tx: Tx, chain: SignedChain) {
  const { merchantCode, startPosition, startHash, headPosition } = chain
  const links = await readLinks(tx, merchantCode, startPosition, BATCH)
  const old = await tx<{ id: number }[]>`
    select id from audit_entries where id = any(${links.map(({ entryId }) => entryId)})
      and at < now() - ${config.RETENTION_DAYS} * interval '1 day'`
  const expired = new Set(old.map(({ id }) => id))
  const entries: number[] = []
  let [position, hash] = [startPosition, startHash]
  for (const link of links) {
    if (!expired.has(link.entryId) || link.position >= headPosition) break
    const { entry } = link
    const fits = entry && computeLinkHash(hash, merchantCode, position + 1, entry).equals(link.hash)
    if (!fits || link.position !== position + 1) {
      log.error(
        { merchant: merchantCode, position: position + 1 },
        'an audit entry past its retention does not fit its chain and is not deleted; run `cli audit verify`',
      )
      break
    }
    entries.push(link.entryId)
    position = link.position
    hash = link.hash
  }
  return { entries, position, hash }
}
