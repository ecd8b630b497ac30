import { once } from 'node:events'
import * as fs from 'node:fs'
import { createServer } from 'node:net'
import { dirname, join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import {
  EmbeddedPostgresError,
  prepareBinaries,
  readPackageMajor,
  runGuarded,
  type ServerUser,
} from './embedded-binaries.ts'
import {
  chooseHome,
  createCluster,
  findCluster,
  isAlive,
  makeFolder,
  readPassword,
  removeAbandoned,
  SHARED_FOLDER,
  WHAT_ELSE,
} from './embedded-cluster.ts'

type EmbeddedPostgres = {
  /** Role `postgres`, database `postgres`, on loopback only. */
  url: string
  /** The folder of the server's files. It is in the requested folder if the server's user can reach it. */
  dataDir: string
  /** Stops the server, and resolves when its process has ended. May be called again. */
  stop(): Promise<void>
}

export type EmbeddedOptions = {
  /** Created if it is missing. The database is in its subfolder `postgres`. */
  dataDir: string
  settings?: Record<string, string>
  log?: LogLine
}

/** Receives one-line messages for the operator. `isBroken`: the server will not recover by itself. */
type LogLine = (line: string, isBroken?: boolean) => void

/** A server that is ready for this long belongs to another process. That of a killed process ends sooner. */
const IN_USE_AFTER_MS = 2_000
/** How long to wait until an earlier server, its process and its shared memory are gone. */
const EARLIER_SERVER_MS = 8_000

const SETTINGS = {
  listen_addresses: '127.0.0.1',
  unix_socket_directories: '',
  max_connections: '100',
  shared_buffers: '64MB',
  // Containers have a /dev/shm of 64 MB or none.
  dynamic_shared_memory_type: 'mmap',
  timezone: 'UTC',
  log_timezone: 'UTC',
  // Our log gets only fatal errors, without statements and values.
  lc_messages: 'C',
  log_line_prefix: '',
  log_min_messages: 'log',
  log_min_error_statement: 'panic',
  log_checkpoints: 'off',
}
/** Failures that go away by themselves or with another port. */
const TRANSIENT = /lock file ".*" already exists|still in use|could not create any TCP\/IP sockets/

/**
 * Starts an embedded Postgres server, whose database is created on the first call. It stops when this process ends,
 * for whatever reason, but does not keep this process running. Postgres ensures that only one server runs a database.
 * @throws EmbeddedPostgresError; within two seconds if another process's server runs this database
 */
export async function startEmbeddedPostgres(options: EmbeddedOptions): Promise<EmbeddedPostgres> {
  const { dataDir, settings = {}, log = () => {} } = options
  try {
    makeFolder(dataDir)
    requireStartable(dataDir)
    const { home, user } = chooseHome(fs.realpathSync(dataDir), log)
    const isRoot = process.getuid?.() === 0
    const bin = prepareBinaries(isRoot ? SHARED_FOLDER : home, user, log)
    removeAbandoned(home)
    const cluster = join(home, 'postgres')
    if (!fs.existsSync(join(cluster, 'PG_VERSION'))) {
      await createCluster({ home, user, bin, isDurable: settings.fsync !== 'off' })
    }
    const all = Object.entries({ ...SETTINGS, ...settings })
    const given = all.flatMap(([name, value]) => ['-c', `${name}=${value}`])
    const command = [join(bin, 'postgres'), '-D', cluster, ...given]
    return await launch({ cluster, command, user, log })
  } catch (error) {
    if (error instanceof EmbeddedPostgresError) throw error
    const reason = error instanceof Error ? error.message : String(error)
    throw new EmbeddedPostgresError(
      `the embedded Postgres cannot use ${dataDir} (${reason}): fix that, ${WHAT_ELSE}`,
      { cause: error },
    )
  }
}

/** Finds the database of `dataDir` for another program: its URL while a process runs it. */
export function findEmbeddedPostgres(dataDir: string): { url: string } | 'stopped' | 'none' {
  const cluster = findCluster(dataDir)
  if (cluster === undefined) return 'none'
  const server = findServer(cluster)
  return server?.isReady ? { url: writeUrl(cluster, server.port) } : 'stopped'
}

/** @throws EmbeddedPostgresError unless the programs are installed, in the version that created the database, if any */
export function requireStartable(dataDir: string): void {
  const major = readPackageMajor()
  const file = join(findCluster(dataDir) ?? dataDir, 'PG_VERSION')
  const stored = fs.existsSync(file) ? fs.readFileSync(file, 'utf8').trim() : major
  if (stored === major) return
  throw new EmbeddedPostgresError(
    `the database in ${dirname(file)} was made by Postgres ${stored}, but the embedded one is Postgres ${major}; nothing was changed: start the release that made it, ${WHAT_ELSE}`,
  )
}

type Running = { pid: number; port: number; isReady: boolean }

/** Finds the server of a cluster by Postgres's lock file, whose process id may be another program's after a crash. */
function findServer(cluster: string): Running | undefined {
  const lines = readIfThere(join(cluster, 'postmaster.pid'))?.split('\n') ?? []
  const pid = Number(lines[0] ?? 0)
  const isOther = pid > 0 && pid !== process.pid && pid !== process.ppid
  if (!isOther || !isAlive(pid)) return undefined
  if (readIfThere(`/proc/${pid}/cmdline`)?.includes(cluster) === false) return undefined
  return { pid, port: Number(lines[3]), isReady: lines[7]?.trim() === 'ready' }
}

/** A server that is ending removes its files. */
function readIfThere(file: string): string | undefined {
  try {
    return fs.readFileSync(file, 'utf8')
  } catch {
    return undefined
  }
}

const writeUrl = (cluster: string, port: number) =>
  `postgres://postgres:${readPassword(cluster)}@127.0.0.1:${port}/postgres`

type Launch = { cluster: string; command: string[]; user: ServerUser; log: LogLine }

/** Starts the server once an earlier one is gone. @throws EmbeddedPostgresError */
async function launch(options: Launch): Promise<EmbeddedPostgres> {
  const { cluster } = options
  const began = performance.now()
  for (let readySince = began; ; await pause(20)) {
    const running = findServer(cluster)
    if (!running?.isReady) readySince = performance.now()
    else if (performance.now() - readySince >= IN_USE_AFTER_MS) {
      throw new EmbeddedPostgresError(
        `the database in ${dirname(cluster)} is in use by process ${running.pid}, its server: stop the process that started it, or this one (kill -INT ${running.pid}) if that was killed; or ${WHAT_ELSE}`,
      )
    }
    const failure = running
      ? `its earlier server, process ${running.pid}, does not end`
      : await tryLaunch(options)
    if (typeof failure === 'object') return failure
    const isTransient = running !== undefined || TRANSIENT.test(failure)
    if (isTransient && performance.now() - began < EARLIER_SERVER_MS) continue
    throw new EmbeddedPostgresError(
      `the embedded Postgres in ${dirname(cluster)} does not start (${failure}): fix that, ${WHAT_ELSE}`,
    )
  }
}

/** Starts the server on a free port. @returns the server once it accepts connections, or why it ended */
async function tryLaunch({
  cluster,
  command,
  user,
  log,
}: Launch): Promise<EmbeddedPostgres | string> {
  const port = await findFreePort()
  let phase: 'starting' | 'running' | 'ending' = 'starting'
  let onReady = () => {}
  const ready = new Promise<undefined>((resolve) => {
    onReady = () => resolve(undefined)
  })
  const program = runGuarded([...command, '-p', String(port)], user, (line) => {
    if (line.includes('ready to accept connections')) onReady()
    else if (phase === 'running' && /^(FATAL|PANIC):/.test(line))
      log(`database server: ${line}`, line.startsWith('PANIC'))
  })
  const end = await Promise.race([ready, program.ended])
  if (end) return extractFailure(end.output)
  phase = 'running'
  program.detach()
  program.ended.then(() => {
    if (phase === 'running')
      log('the database server stopped unexpectedly: restart this process', true)
  })
  async function stop(): Promise<void> {
    phase = 'ending'
    program.end()
    await program.ended
  }
  return { url: writeUrl(cluster, port), dataDir: cluster, stop }
}

function extractFailure(output: string): string {
  const lines = output.split('\n').filter((line) => line.trim() !== '')
  const fatal = lines.filter((line) => /^(FATAL|PANIC|DETAIL|HINT):/.test(line))
  return (fatal.length > 0 ? fatal : lines.slice(-3)).join(' ') || 'it printed nothing'
}

async function findFreePort(): Promise<number> {
  const probe = createServer().listen(0, '127.0.0.1')
  await once(probe, 'listening')
  const address = probe.address()
  await once(probe.close(), 'close')
  return typeof address === 'object' && address ? address.port : 0
}
