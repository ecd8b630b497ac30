import { setTimeout as sleep } from 'node:timers/promises'
import { initialiseCluster, readPassword } from './cluster.ts'
import { EmbeddedPostgresError } from './error.ts'
import { findCluster, type Place, preparePlace } from './files.ts'
import { takeOwnership } from './owner.ts'
import { isSameProcess } from './processes.ts'
import { adoptServer, findServer, launchServer, type Server } from './server.ts'

export type EmbeddedPostgres = {
  /** Role `postgres`, database `postgres`, loopback only. */
  url: string
  /** The server's process. */
  pid: number
  /** The folder the server's files are in: `postgres` in the one asked for, if it can be reached. */
  dataDir: string
  /** The server was running already, left by a process that was killed. */
  adopted: boolean
  /** Ends the server; resolves when it is gone. May be called again. */
  stop(): Promise<void>
}

export type EmbeddedOptions = {
  /** Made if missing; the database is its folder `postgres`. */
  dataDir: string
  /** Further server settings, e.g. `{ fsync: 'off' }`; an adopted server keeps its own. */
  settings?: Record<string, string>
  /** Gets what an operator should know, a line at a time. */
  log?: (line: string) => void
}

/** How long remains of an earlier server (its process, its shared memory) are waited for. */
const REMAINS_MS = 8_000
const FAST_STOP_MS = 5_000

/**
 * Starts a Postgres server of our own, made on the first call, and ends it when this process ends in
 * whatever way. It does not keep this process running.
 * @throws EmbeddedPostgresError also at once when another living process runs this database
 */
export async function startEmbeddedPostgres(options: EmbeddedOptions): Promise<EmbeddedPostgres> {
  const { dataDir, settings = {}, log = () => {} } = options
  try {
    const place = preparePlace(dataDir, log)
    const owner = takeOwnership(place.home)
    try {
      await initialiseCluster(place, settings.fsync !== 'off')
      const password = readPassword(place.cluster)
      const server = await bringUp(place, settings, log)
      return describe(place.cluster, password, server, owner.release)
    } catch (error) {
      owner.release()
      throw error
    }
  } catch (error) {
    if (error instanceof EmbeddedPostgresError) throw error
    const reason = error instanceof Error ? error.message : String(error)
    throw new EmbeddedPostgresError(
      `the embedded Postgres cannot use ${dataDir} (${reason}): mend that, set another DATA_DIR, or set DATABASE_URL`,
      { cause: error },
    )
  }
}

/**
 * The database of `dataDir` for a program beside the service: its address while a process runs it,
 * `stopped` when none does, `none` when it was never made.
 */
export function findEmbeddedPostgres(dataDir: string): { url: string } | 'stopped' | 'none' {
  const cluster = findCluster(dataDir)
  if (cluster === undefined) return 'none'
  const running = findServer(cluster)
  if (!running || running.state === 'orphaned') return 'stopped'
  return { url: writeUrl(readPassword(cluster), running.port) }
}

function writeUrl(password: string, port: number): string {
  return `postgres://postgres:${password}@127.0.0.1:${port}/postgres`
}

async function bringUp(
  place: Place,
  settings: Record<string, string>,
  log: (line: string) => void,
): Promise<Server> {
  const deadline = Date.now() + REMAINS_MS
  for (;;) {
    const running = findServer(place.cluster)
    if (running?.state === 'orphaned') {
      log(`adopted the database server ${running.pid}, left by a process that was killed`)
      return adoptServer(place, running)
    }
    const result = running
      ? { failure: `its earlier server, process ${running.pid}, does not end`, passing: true }
      : await launchServer(place, settings, log)
    if ('server' in result) return result.server
    if (!result.passing || Date.now() > deadline) {
      throw new EmbeddedPostgresError(
        `the embedded Postgres in ${place.home} does not start (${result.failure}): mend that, set another DATA_DIR, or set DATABASE_URL`,
      )
    }
    await sleep(20)
  }
}

function describe(
  cluster: string,
  password: string,
  server: Server,
  release: () => void,
): EmbeddedPostgres {
  let stopped: Promise<void> | undefined
  return {
    url: writeUrl(password, server.port),
    pid: server.pid,
    dataDir: cluster,
    adopted: server.adopted,
    stop() {
      stopped ??= endServer(server).finally(release)
      return stopped
    },
  }
}

async function endServer(server: Server): Promise<void> {
  server.expectEnd()
  signal(server, 'SIGINT')
  const patience = Date.now() + FAST_STOP_MS
  let isHurried = false
  while (isSameProcess(server.name)) {
    if (!isHurried && Date.now() > patience) {
      isHurried = true
      signal(server, 'SIGQUIT')
    }
    await sleep(5)
  }
  server.closeWatchdog()
}

function signal({ pid, name }: Server, what: 'SIGINT' | 'SIGQUIT'): void {
  if (!isSameProcess(name)) return
  try {
    process.kill(pid, what)
  } catch {
    // It ended this very moment.
  }
}
