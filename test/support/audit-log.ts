import { randomUUID } from 'node:crypto'
import {
  type AuditVerification,
  addCheckpoint,
  deleteExpiredEntries,
  verifyAudit,
} from '../../src/access/audit-checkpoints.ts'
import { openDataKeys } from '../../src/db/data-keys.ts'
import type { Encryption } from '../../src/platform/crypto/encryption.ts'
import { createLog, type Log } from '../../src/platform/telemetry/log.ts'
import { borrowDatabase, type TestDatabase } from './database.ts'
import { useStarted } from './use-started.ts'

/** The key of the database that `useAuditLog` borrows. */
export const AUDIT_KEY = Buffer.alloc(32, 9).toString('base64')

/** An audit log of its own. */
export type AuditLog = {
  database: TestDatabase
  encryption: Encryption
  log: Log
  /** Lines of the log. */
  logged: string[]
  /** Empties the log and its checkpoints; the next entry has the id 101. */
  clear(): Promise<void>
  /** Writes entries of an account, each in a transaction of its own; returns their ids. */
  write(n: number, merchantCode?: string | null, minutesAgo?: number): Promise<number[]>
  /** Adds checkpoints until no entry is old enough. */
  sign(most?: number): Promise<void>
  /** Deletes what is older than 400 days, until nothing is left; returns the number of entries. */
  expire(): Promise<number>
  verify(noted?: { upToId: number; mac: string }): Promise<AuditVerification>
  /** Returns what `verify` finds, as `differs 101-103`. */
  find(): Promise<string[]>
  stop(): Promise<void>
}

async function startAuditLog(): Promise<AuditLog> {
  const database = await borrowDatabase()
  const { sql } = database
  const encryption = await openDataKeys(sql, { current: AUDIT_KEY })
  const logged: string[] = []
  const log = createLog('info', { write: (line) => void logged.push(line) })
  const ctx = { db: database, log, encryption }
  const verify: AuditLog['verify'] = (noted) => verifyAudit(sql, encryption, { noted, batch: 3 })
  return {
    database,
    encryption,
    log,
    logged,
    verify,
    async clear() {
      await sql`truncate audit_entries, audit_checkpoints`
      await sql`alter sequence audit_entries_id_seq restart with 101`
      logged.length = 0
    },
    async write(n, merchantCode = 'A', minutesAgo = 15) {
      const ids: number[] = []
      for (let left = n; left > 0; left -= 1) {
        const [row] = await sql<{ id: number }[]>`
          insert into audit_entries (at, key_id, actor, operation, merchant_code, object_id, request_id, outcome)
          values (now() - ${minutesAgo} * interval '1 minute', ${randomUUID()}, 'Nguyễn "An"', 'POST /v1/x',
            ${merchantCode}, ${`object-${left}`}, ${`request-${left}`}, 'done')
          returning id`
        ids.push(row?.id ?? 0)
      }
      return ids
    },
    async sign(most) {
      while ((await addCheckpoint(ctx, most)) > 0);
    },
    async expire() {
      const config = { RETENTION_DAYS: 400 }
      let sum = 0
      for (let n = -1; n !== 0; sum += Math.max(n, 0)) {
        n = await deleteExpiredEntries({ ...ctx, config }, () => {})
      }
      return sum
    },
    async find() {
      const { findings } = await verify()
      return findings.map(({ kind, afterId, upToId }) => `${kind} ${afterId}-${upToId}`)
    },
    stop: () => database.release(),
  }
}

/** Starts the audit log for the tests of a file. */
export function useAuditLog(): AuditLog {
  return useStarted(startAuditLog, (log) => log.stop())
}
