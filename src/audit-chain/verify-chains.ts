import type { Encryption } from '../platform/crypto/encryption.ts'
import { runInTransaction } from '../platform/postgres/transaction.ts'
import type { Sql, Tx } from '../platform/postgres/types.ts'
import { listChains } from './chains.ts'
import { WITHOUT_ACCOUNT } from './entry-hash.ts'
import { addFinding, createFindingList, type FindingList } from './findings.ts'
import { selectLinked } from './read-batch.ts'
import { type NotedHead, type VerifiedChain, verifyChain } from './verify-chain.ts'

/** The chains, and the entries that are in none. */
export type Verification = {
  chains: VerifiedChain[]
  /** Entries too young to be in a chain. */
  waiting: number
  /** Entries outside every chain that should be in one. */
  outside: FindingList
}

export type VerifyOptions = {
  /** The only chain to verify. */
  merchantCode?: string | undefined
  /** What its head was at some time. */
  noted?: NotedHead | undefined
  /** Rows per statement. */
  batch?: number
}

const BATCH = 2_000

/**
 * Verifies the audit log against its chains, in one snapshot, in bounded batches. It writes nothing and locks nothing,
 * so the service may run.
 */
export async function verifyChains(
  sql: Sql,
  encryption: Encryption,
  { merchantCode, noted, batch = BATCH }: VerifyOptions = {},
): Promise<Verification> {
  return await runInTransaction(sql, async (tx) => {
    await tx`set transaction isolation level repeatable read, read only`
    const stored = await listChains(tx)
    const codes = (await listCodes(tx)).filter((code) => (merchantCode ?? code) === code)
    // A chain that was deleted altogether has nothing left to list: the noted head is what is missed.
    if (noted && merchantCode !== undefined && codes.length === 0) codes.push(merchantCode)
    const chains: VerifiedChain[] = []
    for (const code of codes) {
      const chain = stored.find((one) => one.merchantCode === code)
      chains.push(
        await verifyChain(tx, encryption, { merchantCode: code, chain }, { noted, batch }),
      )
    }
    return { chains, ...(await findOutside(tx, merchantCode, batch)) }
  })
}

/** Lists the chains that have ends or links. */
async function listCodes(tx: Tx): Promise<string[]> {
  const rows = await tx<{ code: string }[]>`
    with recursive linked as (
      (select merchant_code as code from audit_links order by merchant_code limit 1)
      union all
      select (select l.merchant_code from audit_links as l where l.merchant_code > linked.code
        order by l.merchant_code limit 1) from linked where linked.code is not null
    )
    select code from linked where code is not null
    union select merchant_code from audit_chains order by code`
  return rows.map(({ code }) => code)
}

type Outsider = {
  id: number
  chained: boolean
  isOurs: boolean
  isPassed: boolean
  isLate: boolean
}

/** Reads all entries, to find those that are in no chain. */
async function findOutside(
  tx: Tx,
  merchantCode: string | undefined,
  batch: number,
): Promise<Pick<Verification, 'outside' | 'waiting'>> {
  const outside = createFindingList()
  let waiting = 0
  for (let after = -(2 ** 53) + 1, more = true; more; ) {
    const rows = await tx<Outsider[]>`
      select e.id, l.entry_id is not null as chained,
        coalesce(e.merchant_code, ${WITHOUT_ACCOUNT}) = coalesce(${merchantCode ?? null}, e.merchant_code,
          ${WITHOUT_ACCOUNT}) as "isOurs",
        e.id <= coalesce((select done_up_to from audit_progress), 0) as "isPassed",
        not (e.at between now() - interval '2 minutes' and now() + interval '2 minutes') as "isLate"
      from ${selectLinked(tx, after, batch)}
      order by e.id`
    for (const { id, isPassed, isLate } of rows.filter((one) => one.isOurs && !one.chained)) {
      if (isPassed) addFinding(outside, 'inserted', null, id)
      else if (isLate) addFinding(outside, 'not_chained', null, id)
      else waiting += 1
    }
    after = rows.at(-1)?.id ?? after
    more = rows.length === batch
  }
  return { outside, waiting }
}
