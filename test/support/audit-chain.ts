import { randomUUID } from 'node:crypto'
import { createChainEntries } from '../../src/audit-chain/chain-entries.ts'
import { listChains } from '../../src/audit-chain/chains.ts'
import { deleteExpiredEntries } from '../../src/audit-chain/delete-expired-entries.ts'
import { type VerifyOptions, verifyChains } from '../../src/audit-chain/verify-chains.ts'
import { openDataKeys } from '../../src/db/data-keys.ts'
import type { Encryption } from '../../src/platform/crypto/encryption.ts'
import { createLog } from '../../src/platform/telemetry/log.ts'
import { borrowDatabase, type TestDatabase } from './database.ts'
import { useStarted } from './use-started.ts'
import { waitUntil } from './wait-until.ts'

/** The key of the database that `useAuditChain` makes. */
export const AUDIT_KEY = Buffer.alloc(32, 9).toString('base64')

/** A database with an audit log of the accounts `A` and `B` and of none. */
export type AuditChain = {
  database: TestDatabase
  encryption: Encryption
  /** Lines of the log. */
  logged: string[]
  /** Empties the log and its chains. */
  clear(): Promise<void>
  /** Writes entries of an account, some days ago, each in a transaction of its own; returns their ids. */
  write(n: number, merchantCode?: string | null, daysAgo?: number): Promise<number[]>
  /** Runs the pass until nothing is left, as a process that has just started. */
  chain(batch?: number): Promise<void>
  /**
   * Repeats `chain` until it knows that no entry can appear behind those in a chain. Transaction numbers belong to the
   * server, so one that is open in another test's database puts this off.
   */
  chainAll(): Promise<void>
  /** Deletes what is older than 400 days, until nothing is left; returns the number of entries. */
  expire(): Promise<number>
  /** Returns what `verify` finds: the kinds, with the position or the entry. */
  verify(options?: VerifyOptions): Promise<string[]>
  /** The head of a chain as the log has it. */
  head(merchantCode?: string): Promise<string>
  stop(): Promise<void>
}

async function startAuditChain(): Promise<AuditChain> {
  const database = await borrowDatabase()
  const { sql } = database
  const encryption = await openDataKeys(sql, { current: AUDIT_KEY })
  const logged: string[] = []
  const log = createLog('info', { write: (line) => void logged.push(line) })
  const ctx = { sql, log, encryption }
  // Named, because `this` has the type of what an async function returns only by chance of the compiler's order.
  const started: AuditChain = {
    database,
    encryption,
    logged,
    async clear() {
      await sql`truncate audit_entries, audit_links, audit_chains, audit_progress`
      logged.length = 0
    },
    async write(n, merchantCode = 'A', daysAgo = 0) {
      const ids: number[] = []
      for (let left = n; left > 0; left -= 1) {
        const [row] = await sql<{ id: number }[]>`
          insert into audit_entries (at, key_id, actor, operation, merchant_code, object_id, request_id, outcome)
          values (now() - ${daysAgo} * interval '1 day', ${randomUUID()}, 'Nguyễn "An"', 'POST /v1/x', ${merchantCode},
            ${`object-${left}`}, ${`request-${left}`}, 'done')
          returning id`
        ids.push(row?.id ?? 0)
      }
      return ids
    },
    async chain(batch) {
      const pass = createChainEntries(ctx, batch)
      while ((await pass()) > 0);
    },
    async chainAll() {
      await waitUntil(
        async () => {
          await this.chain()
          const [row] = await sql<{ done: boolean }[]>`
            select done_up_to = (select max(id) from audit_entries) as done from audit_progress`
          return row?.done === true
        },
        { what: 'the pass knows that all earlier entries are in a chain' },
      )
    },
    async expire() {
      const config = { RETENTION_DAYS: 400 }
      let sum = 0
      for (let n = -1; n !== 0; sum += n) n = await deleteExpiredEntries({ ...ctx, config })
      return sum
    },
    async verify(options) {
      const { chains, outside } = await verifyChains(sql, encryption, { batch: 3, ...options })
      return [...chains.flatMap(({ findings }) => findings), ...outside.findings].map(
        ({ kind, position, entryId }) => `${kind} ${position ?? `entry ${entryId}`}`,
      )
    },
    async head(merchantCode = 'A') {
      const chain = (await listChains(sql)).find((one) => one.merchantCode === merchantCode)
      return `${chain?.headPosition}:${chain?.headHash.toString('hex')}`
    },
    stop: () => database.release(),
  }
  return started
}

/** Starts the audit log for the tests of a file. */
export function useAuditChain(): AuditChain {
  return useStarted(startAuditChain, (chain) => chain.stop())
}
