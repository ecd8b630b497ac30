import type { Context } from '../context.ts'
import { AUDIT_CHAIN_LOCK } from '../db/locks.ts'
import { auditLinks } from '../db/schema.ts'
import { pickColumns, rowSet } from '../platform/postgres/row-set.ts'
import { runInTransaction } from '../platform/postgres/transaction.ts'
import type { Tx } from '../platform/postgres/types.ts'
import { type Chain, createChain, findBreak, lockChains, storeChain } from './chains.ts'
import { computeLinkHash, type HashedEntry, nameChain } from './entry-hash.ts'
import { createHeadLog, type HeadLog } from './log-heads.ts'
import { readBatch } from './read-batch.ts'
import { beginSweep, endSweep, type Sweep } from './sweep.ts'

type ChainContext = Pick<Context, 'sql' | 'log' | 'encryption'>

/** Entries per round, which then takes some 20 ms. */
const BATCH = 1_000

/**
 * Makes the pass that appends committed audit entries to the chains of their accounts. No write waits for it: a round
 * appends one batch in a commit of its own, in one process at a time. A series of rounds that reaches the newest entry
 * is a sweep; it begins where every earlier entry is known to be in a chain.
 *
 * A chain that does not end at its signed head was changed in the database. Nothing is appended to it, because its
 * next signature would cover the change.
 * @param heads replaces the log of heads
 * @returns the pass, which returns the number of entries it read; 0 when it reached the newest
 */
export function createChainEntries(
  ctx: ChainContext,
  batch = BATCH,
  heads: HeadLog = createHeadLog(ctx),
): () => Promise<number> {
  let sweep: Sweep | undefined
  const broken = new Set<string>()

  return async () => {
    const round = await runInTransaction(ctx.sql, async (tx) => {
      const [turn] = await tx<{ mine: boolean }[]>`
        select pg_try_advisory_xact_lock(${AUDIT_CHAIN_LOCK}) as mine`
      if (!turn?.mine) return undefined
      const current = sweep ?? (await beginSweep(tx))
      const read = await readBatch(tx, current.from, batch)
      const left = await appendEntries(ctx, tx, read.unchained)
      const next = { ...current, from: read.upTo, isWhole: current.isWhole && left.size === 0 }
      const more = read.count === batch
      if (!more) await endSweep(tx, next)
      return { left, next: more ? next : undefined, count: more ? read.count : 0 }
    })
    if (!round) return 0
    sweep = round.next
    logBroken(ctx, broken, round.left)
    if (!sweep) await heads.logDaily()
    return round.count
  }
}

/** @returns the chains that were not continued, with the reason */
async function appendEntries(
  { encryption }: ChainContext,
  tx: Tx,
  entries: readonly HashedEntry[],
): Promise<Map<string, string>> {
  const left = new Map<string, string>()
  if (entries.length === 0) return left
  const stored = await lockChains(tx, [...new Set(entries.map(nameChain))])
  const links: NewLink[] = []
  for (const [code, one] of stored) {
    const why = findBreak(encryption, one)
    if (why) left.set(code, why)
    else links.push(...(await extendChain(tx, encryption, one.chain ?? createChain(code), entries)))
  }
  await tx`
    insert into audit_links (merchant_code, position, entry_id, hash)
    select merchant_code, position, entry_id, hash from ${rowSet(tx, 'given', LINK, links)} order by ordinality`
  return left
}

/** A link; its hash as Postgres writes bytes. */
type NewLink = { merchantCode: string; position: number; entryId: number; hash: string }
const LINK = pickColumns(auditLinks, 'merchantCode', 'position', 'entryId', 'hash')

async function extendChain(
  tx: Tx,
  encryption: Context['encryption'],
  chain: Chain,
  entries: readonly HashedEntry[],
): Promise<NewLink[]> {
  const { merchantCode } = chain
  let [position, hash] = [chain.headPosition, chain.headHash]
  const links = entries
    .filter((entry) => nameChain(entry) === merchantCode)
    .map((entry) => {
      position += 1
      hash = computeLinkHash(hash, merchantCode, position, entry)
      return { merchantCode, position, entryId: entry.id, hash: `\\x${hash.toString('hex')}` }
    })
  await storeChain(tx, encryption, { ...chain, headPosition: position, headHash: hash })
  return links
}

/** Logs each chain that is found broken once in the life of the process; the growing lag keeps the alert. */
function logBroken(
  { log }: ChainContext,
  broken: Set<string>,
  left: ReadonlyMap<string, string>,
): void {
  for (const [merchant, why] of left) {
    if (!broken.has(merchant))
      log.error(
        { merchant, why },
        'the audit chain was changed in the database; nothing is appended to it',
      )
    broken.add(merchant)
  }
}
