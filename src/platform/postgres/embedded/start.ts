import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { findPackage, readPackageMajor } from './binaries.ts'
import { initialiseCluster, readPassword } from './cluster.ts'
import { EmbeddedPostgresError } from './error.ts'
import { findCluster, type Installation, prepareInstallation } from './files.ts'
import { takeOwnership } from './owner.ts'
import { isSameProcess } from './processes.ts'
import { requireSameMajor } from './require-same-major.ts'
import { adoptServer, findServer, launchServer, type Server } from './server.ts'

export type EmbeddedPostgres = {
  /** Role `postgres`, database `postgres`, loopback only. */
  url: string
  /** The server's process id. */
  pid: number
  /** The folder of the server's files: `postgres` in the requested one, if the server's user can reach it. */
  dataDir: string
  /** The server was already running: the process that had started it was killed. */
  adopted: boolean
  /** Stops the server; resolves when its process has ended. May be called again. */
  stop(): Promise<void>
}

export type EmbeddedOptions = {
  /** Created if missing; the database is its folder `postgres`. */
  dataDir: string
  /** Further server settings, e.g. `{ fsync: 'off' }`; an adopted server keeps its own. */
  settings?: Record<string, string>
  /** Receives messages for the operator, one line each. */
  log?: (line: string) => void
}

/** How long to wait for an earlier server to disappear: its process, its shared memory (ms). */
const EARLIER_SERVER_TIMEOUT_MS = 8_000
/** After so long the fast shutdown becomes an immediate one (ms). */
const FAST_SHUTDOWN_MS = 5_000

/**
 * Starts an embedded Postgres server, created on the first call, and stops it when this process ends, for
 * whatever reason. It does not keep this process running.
 * @throws EmbeddedPostgresError; at once when another running process uses this database
 */
export async function startEmbeddedPostgres(options: EmbeddedOptions): Promise<EmbeddedPostgres> {
  const { dataDir, settings = {}, log = () => {} } = options
  try {
    const installation = prepareInstallation(dataDir, log)
    const owner = takeOwnership(installation.home)
    try {
      await initialiseCluster(installation, settings.fsync !== 'off')
      const password = readPassword(installation.cluster)
      const server = await startOrAdopt(installation, settings, log)
      return createHandle(installation.cluster, password, server, owner.release)
    } catch (error) {
      owner.release()
      throw error
    }
  } catch (error) {
    if (error instanceof EmbeddedPostgresError) throw error
    const reason = error instanceof Error ? error.message : String(error)
    throw new EmbeddedPostgresError(
      `the embedded Postgres cannot use ${dataDir} (${reason}): fix that, set another DATA_DIR, or set DATABASE_URL`,
      { cause: error },
    )
  }
}

/**
 * Finds the database of `dataDir`, for a program that runs beside the service: its URL while a process runs
 * it, `stopped` when none does, `none` when it was never created.
 */
export function findEmbeddedPostgres(dataDir: string): { url: string } | 'stopped' | 'none' {
  const cluster = findCluster(dataDir)
  if (cluster === undefined) return 'none'
  const running = findServer(cluster)
  if (!running || running.state === 'orphaned') return 'stopped'
  return { url: writeUrl(readPassword(cluster), running.port) }
}

/**
 * Checks that the programs of this platform are installed and can run the database of `dataDir`, if there is one. Changes
 * nothing.
 * @throws EmbeddedPostgresError
 */
export function requireStartable(dataDir: string): void {
  const major = readPackageMajor()
  const cluster = findCluster(dataDir)
  const findBin = () => join(findPackage(), 'native/bin')
  if (cluster !== undefined) requireSameMajor(cluster, major, findBin)
}

function writeUrl(password: string, port: number): string {
  return `postgres://postgres:${password}@127.0.0.1:${port}/postgres`
}

async function startOrAdopt(
  installation: Installation,
  settings: Record<string, string>,
  log: (line: string) => void,
): Promise<Server> {
  const deadline = Date.now() + EARLIER_SERVER_TIMEOUT_MS
  for (;;) {
    const running = findServer(installation.cluster)
    if (running?.state === 'orphaned') {
      log(`adopted the database server ${running.pid} of a process that was killed`)
      return adoptServer(installation, running)
    }
    const result = running
      ? { failure: `its earlier server, process ${running.pid}, does not end`, transient: true }
      : await launchServer(installation, settings, log)
    if ('server' in result) return result.server
    if (!result.transient || Date.now() > deadline) {
      throw new EmbeddedPostgresError(
        `the embedded Postgres in ${installation.home} does not start (${result.failure}): fix that, set another DATA_DIR, or set DATABASE_URL`,
      )
    }
    await sleep(20)
  }
}

function createHandle(
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
  const immediateAt = Date.now() + FAST_SHUTDOWN_MS
  let isImmediate = false
  while (isSameProcess(server.name)) {
    if (!isImmediate && Date.now() > immediateAt) {
      isImmediate = true
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
    // The server ended just now.
  }
}
