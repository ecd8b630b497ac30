import type { Encryption } from '../platform/crypto/encryption.ts'
import type { Tx } from '../platform/postgres/types.ts'
import { createChain, isSigned, type SignedChain } from './chains.ts'
import { computeLinkHash, type HashedEntry } from './entry-hash.ts'
import { addFinding, createFindingList, type FindingList } from './findings.ts'
import { type Link, readLinks, readLinksBefore } from './read-links.ts'

/** A head as it was noted from the log or the metrics: a position, and the first digits of its hash. */
export type NotedHead = { position: number; hash: string }

/** What was verified of a chain. */
export type VerifiedChain = FindingList & {
  merchantCode: string
  /** Entries that are as they were recorded. */
  verified: number
  /** The position that verification began after: the last one that retention deleted. */
  startPosition: number
  /** The signed head, or the last link where there is none. */
  headPosition: number
  headHash: string
  headAt: string | null
}

/** Times are not strictly in order: an entry has that of the beginning of its transaction. */
const OUT_OF_ORDER_MS = 3_600_000

/**
 * Verifies a chain from the signed position that retention left to its signed head.
 * @param chain its stored ends, if there are any
 * @param batch links per statement
 */
export async function verifyChain(
  tx: Tx,
  encryption: Encryption,
  { merchantCode, chain }: { merchantCode: string; chain: SignedChain | undefined },
  { noted, batch }: { noted?: NotedHead | undefined; batch: number },
): Promise<VerifiedChain> {
  const ends = chain ?? createChain(merchantCode)
  const walk = createWalk(merchantCode, ends.startPosition, ends.startHash, noted)
  if (!chain) addFinding(walk.list, 'no_signed_head')
  else if (!isSigned(encryption, chain)) addFinding(walk.list, 'signature')
  for (const { position, entryId } of await readLinksBefore(tx, ends)) {
    addFinding(walk.list, 'before_start', position, entryId)
  }
  for (let more = true; more; ) {
    const links = await readLinks(tx, merchantCode, walk.position, batch)
    for (const link of links) visit(walk, link)
    more = links.length === batch
  }
  if (chain) compareHead(walk, chain)
  if (noted && noted.position > walk.position)
    addFinding(walk.list, 'shorter_than_noted', noted.position)
  return {
    merchantCode,
    verified: walk.verified,
    startPosition: ends.startPosition,
    headPosition: chain?.headPosition ?? walk.position,
    headHash: (chain?.headHash ?? walk.hash).toString('hex'),
    headAt: chain?.headAt ?? null,
    ...walk.list,
  }
}

type Walk = {
  merchantCode: string
  position: number
  hash: Buffer
  newestMs: number
  verified: number
  noted: NotedHead | undefined
  list: FindingList
}

function createWalk(
  merchantCode: string,
  position: number,
  hash: Buffer,
  noted: NotedHead | undefined,
): Walk {
  const list = createFindingList()
  const walk = { merchantCode, position, hash, newestMs: -Infinity, verified: 0, noted, list }
  compareNoted(walk)
  return walk
}

/** Compares one link with what is before it. It goes on with the stored hash, so each change is found at its place. */
function visit(walk: Walk, { position, entryId, hash, entry }: Link): void {
  const isNext = position === walk.position + 1
  if (!isNext) addFinding(walk.list, 'link_missing', walk.position + 1)
  if (!entry) addFinding(walk.list, 'missing', position, entryId)
  else if (isNext) {
    const computed = computeLinkHash(walk.hash, walk.merchantCode, position, entry)
    if (computed.equals(hash)) walk.verified += 1
    else addFinding(walk.list, 'changed', position, entryId)
  }
  if (entry) compareTime(walk, position, entry)
  walk.position = position
  walk.hash = hash
  compareNoted(walk)
}

function compareTime(walk: Walk, position: number, { id, at }: HashedEntry): void {
  const atMs = Date.parse(`${at?.slice(0, 23)}Z`)
  if (atMs < walk.newestMs - OUT_OF_ORDER_MS) addFinding(walk.list, 'backdated', position, id)
  if (atMs > walk.newestMs) walk.newestMs = atMs
}

function compareNoted({ noted, position, hash, list }: Walk): void {
  if (noted?.position !== position || hash.toString('hex').startsWith(noted.hash)) return
  addFinding(list, 'other_than_noted', position)
}

function compareHead(
  { position, hash, list }: Walk,
  { headPosition, headHash }: SignedChain,
): void {
  if (position < headPosition) addFinding(list, 'cut_off', position + 1)
  else if (position > headPosition) addFinding(list, 'appended', headPosition + 1)
  else if (!hash.equals(headHash)) addFinding(list, 'rewritten', position)
}
