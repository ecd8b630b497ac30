import { chmod, mkdtemp, rm, statfs } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import postgres from 'postgres'
import type { TestProject } from 'vitest/node'
import { migrateDatabase } from '../../src/db/migrate.ts'
import { startEmbeddedPostgres } from '../../src/platform/postgres/embedded.ts'

declare module 'vitest' {
  export interface ProvidedContext {
    /** The server that has the databases of all test files. */
    serverUrl: string
    /** What the names of this run's databases begin with. */
    databasePrefix: string
    /** A migrated database to clone: 32 ms, against 153 ms for migrating each database. */
    template: string
  }
}

/**
 * Starts one server per run: that of `TEST_DATABASE_URL`, or an embedded one without fsync. Workers leave their
 * databases behind: they go with the embedded server, and are dropped from a given one.
 */
export default async function startDatabase(project: TestProject) {
  const server = await chooseServer()
  const template = `${PREFIX}template`
  const admin = postgres(server.url, { max: 1, onnotice: () => {} })
  await admin.unsafe(`create database ${template}`)
  await admin.end()
  const url = new URL(server.url)
  url.pathname = `/${template}`
  await migrateDatabase(url.href)
  project.provide('serverUrl', server.url)
  project.provide('databasePrefix', PREFIX)
  project.provide('template', template)
  return async () => {
    if (process.env.TEST_DATABASE_URL) await dropDatabases(server.url)
    await server.stop()
  }
}

/** Several runs may share a server. */
const PREFIX = `ipn_${process.pid}_`

async function dropDatabases(serverUrl: string): Promise<void> {
  const admin = postgres(serverUrl, { max: 1, onnotice: () => {} })
  const left = await admin<{ name: string }[]>`
    select datname as name from pg_database where starts_with(datname, ${PREFIX})`
  for (const { name } of left) {
    await admin.unsafe(`drop database if exists ${name} with (force)`)
  }
  await admin.end()
}

/** Nothing of it has to survive, and no test waits for statistics: those that need them run `analyze`. */
const CHEAP = {
  fsync: 'off',
  full_page_writes: 'off',
  wal_level: 'minimal',
  max_wal_senders: '0',
  autovacuum: 'off',
  jit: 'off',
  max_connections: '400',
  max_wal_size: '512MB',
}

/** The server for tests, and what stops it if this started it. */
export async function chooseServer(): Promise<{ url: string; stop(): Promise<void> }> {
  const given = process.env.TEST_DATABASE_URL
  if (given) return { url: given, stop: async () => {} }
  const folder = await mkdtemp(join(await chooseParent(), 'ipn-test-'))
  await chmod(folder, 0o755)
  const embedded = await startEmbeddedPostgres({
    dataDir: folder,
    settings: CHEAP,
  })
  await simplifyPassword(embedded.url)
  return {
    url: embedded.url,
    async stop() {
      await embedded.stop()
      await rm(folder, { recursive: true, force: true })
    },
  }
}

/**
 * Proves the password in one round: the usual 4,096 take 2 to 3 ms of CPU time in every session, of which each service opens six
 * to ten.
 */
async function simplifyPassword(url: string): Promise<void> {
  const admin = postgres(url, { max: 1 })
  const password = decodeURIComponent(new URL(url).password)
  await admin.unsafe(`set scram_iterations = 1; alter role postgres password '${password}'`)
  await admin.end()
}

const SHARED_MEMORY = '/dev/shm'
/** Room for the databases of four workers and the log before them, several times over (bytes). */
const ENOUGH = 3 * 1024 ** 3

/**
 * Chooses memory where there is enough of it: every database consists of 500 files, and with those on a disk the same 474
 * tests took 58 to 64 s instead of 46 s.
 */
async function chooseParent(): Promise<string> {
  const { bavail, bsize } = await statfs(SHARED_MEMORY).catch(() => ({ bavail: 0, bsize: 0 }))
  return bavail * bsize >= ENOUGH ? SHARED_MEMORY : tmpdir()
}
