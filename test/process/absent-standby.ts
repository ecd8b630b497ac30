import { chmodSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import postgres from 'postgres'
import { migrateDatabase } from '../../src/db/migrate.ts'
import { startEmbeddedPostgres } from '../../src/platform/postgres/embedded.ts'
import type { Sql } from '../../src/platform/postgres/types.ts'
import { waitUntil } from '../support/wait-until.ts'

/** A migrated database on a server of its own, whose commits can be made to wait for a standby that never comes. */
export type WaitingDatabase = {
  url: string
  /** Sessions that wait for no standby. */
  sql: Sql
  /** From now on every commit waits. */
  hold(): Promise<void>
  /** Ends all waits, and commits normally from now on. */
  release(): Promise<void>
  /** Resolves when this many commits wait. */
  untilWaiting(commits: number): Promise<void>
  /** Cancels waits, by default of all commits: the server reports these as committed, with a warning. */
  cancelWaits(limit?: number): Promise<void>
  stop(): Promise<void>
}

export async function startWaitingDatabase(): Promise<WaitingDatabase> {
  const folder = mkdtempSync(join(tmpdir(), 'ipn-waiting-'))
  chmodSync(folder, 0o755)
  const server = await startEmbeddedPostgres({ dataDir: folder, settings: { fsync: 'off' } })
  await migrateDatabase(server.url)
  const sql: Sql = postgres(server.url, {
    max: 3,
    onnotice: () => {},
    types: { int8: { to: 20, from: [20], serialize: String, parse: Number } },
    connection: { synchronous_commit: 'local' },
  })
  const probe = postgres(server.url, { max: 1, onnotice: () => {} })

  const commit = async () => await probe`select pg_logical_emit_message(true, 'probe', '')`
  // A service on this database records every three seconds that it lives. That commit is not the tests'.
  const waiting = sql`
    pg_stat_activity where wait_event = 'SyncRep' and query not like '%insert into processes%'`
  const countWaiting = async () => (await sql`select from ${waiting}`).length
  async function cancelWaits(limit = 1_000): Promise<void> {
    await sql`select pg_cancel_backend(pid) from ${waiting} limit ${limit}`
  }
  async function set(names: string): Promise<void> {
    await sql.unsafe(`alter system set synchronous_standby_names = '${names}'`)
    await sql`select pg_reload_conf()`
  }
  return {
    url: server.url,
    sql,
    cancelWaits,
    async hold() {
      await set('absent')
      // The server applies it a moment later: one commit after the other, until one waits.
      let running = false
      const waits = async () => {
        if (!running) {
          running = true
          commit().then(() => {
            running = false
          })
        }
        return (await countWaiting()) > 0
      }
      await waitUntil(waits, { what: 'commits wait' })
      await cancelWaits()
      await waitUntil(() => !running, { what: 'the end of the first wait' })
    },
    async release() {
      await set('')
      // It waits until the server has applied that, and no `hold` that follows takes effect before.
      await commit()
      await waitUntil(async () => (await countWaiting()) === 0, { what: 'no commit waits' })
    },
    async untilWaiting(commits) {
      const what = `${commits} commits wait`
      await waitUntil(async () => (await countWaiting()) === commits, { what })
    },
    async stop() {
      await Promise.all([sql.end({ timeout: 1 }), probe.end({ timeout: 1 })])
      await server.stop()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}
