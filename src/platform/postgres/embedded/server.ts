import { EventEmitter, once } from 'node:events'
import { readFileSync, readlinkSync, rmSync, symlinkSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import type { Installation } from './files.ts'
import { isSameProcess, nameProcess, readProcess } from './processes.ts'
import { isWatchdog, runGuarded, watchServer } from './watchdog.ts'

export type Server = {
  pid: number
  /** Identifies the process, and no later one with its id. */
  name: string
  port: number
  adopted: boolean
  /** Call before ending the server: its end is not logged from then on. */
  expectEnd(): void
  closeWatchdog(): void
}

export type RunningServer = {
  pid: number
  port: number
  /** `orphaned`: ready, and no process will end it. `ending` also covers a server that is starting. */
  state: 'orphaned' | 'ending'
}

export type LaunchResult = { server: Server } | { failure: string; transient: boolean }

const LOCK_FILE = 'postmaster.pid'
const WATCHDOG_RECORD = '.guard'
const SETTINGS = {
  listen_addresses: '127.0.0.1',
  unix_socket_directories: '',
  max_connections: '100',
  shared_buffers: '64MB',
  // Containers have a /dev/shm of 64 MB or none.
  dynamic_shared_memory_type: 'mmap',
  timezone: 'UTC',
  log_timezone: 'UTC',
  // Only fatal errors reach our log: no statements and no values.
  lc_messages: 'C',
  log_line_prefix: '',
  log_min_messages: 'log',
  log_min_error_statement: 'panic',
  log_checkpoints: 'off',
}
/** Failures that end by themselves or with another port. */
const TRANSIENT = /lock file ".*" already exists|still in use|could not create any TCP\/IP sockets/

/** Returns whether the process is a Postgres server that runs this cluster. */
function isServer(pid: number, cluster: string): boolean {
  const command = readProcess(pid)?.command ?? ''
  return command.includes(`/postgres -D ${cluster} -`) && !isWatchdog(command)
}

/** Finds the server that still runs this cluster, whichever process started it. */
export function findServer(cluster: string): RunningServer | undefined {
  const lines = readLockFile(cluster)
  const pid = Number(lines[0])
  if (!Number.isSafeInteger(pid) || !isServer(pid, cluster)) return undefined
  const isOrphan = lines[7]?.trim() === 'ready' && !isGuarded(cluster, pid)
  return { pid, port: Number(lines[3]), state: isOrphan ? 'orphaned' : 'ending' }
}

/** Takes over a server whose process was killed together with its watchdog. */
export function adoptServer({ cluster, user }: Installation, { pid, port }: RunningServer): Server {
  const watchdog = watchServer(pid, join(cluster, LOCK_FILE), user)
  recordWatchdog(cluster, watchdog.pid)
  return {
    pid,
    name: nameProcess(pid),
    port,
    adopted: true,
    expectEnd() {},
    closeWatchdog: watchdog.end,
  }
}

/**
 * Starts the server on a free port. Resolves when it accepts connections, or when it has ended instead; if
 * the failure is `transient`, another attempt may succeed.
 */
export async function launchServer(
  { cluster, user, bin }: Installation,
  settings: Record<string, string>,
  log: (line: string) => void,
): Promise<LaunchResult> {
  const port = await findFreePort()
  const command = [join(bin, 'postgres'), '-D', cluster, '-p', String(port)]
  for (const [name, value] of Object.entries({ ...SETTINGS, ...settings })) {
    command.push('-c', `${name}=${value}`)
  }
  const events = new EventEmitter<{ ready: [] }>()
  let phase: 'starting' | 'running' | 'ending' = 'starting'
  const program = runGuarded(command, user, (line) => {
    if (line.includes('ready to accept connections')) events.emit('ready')
    else if (phase === 'running' && /^(FATAL|PANIC):/.test(line)) log(`database server: ${line}`)
  })
  const end = await Promise.race([once(events, 'ready').then(() => undefined), program.ended])
  if (end) {
    const failure = extractFailure(end.output)
    return { failure, transient: TRANSIENT.test(failure) }
  }
  phase = 'running'
  program.detach()
  program.ended.then(() => {
    if (phase === 'running') log('the database server stopped unexpectedly: restart this process')
  })
  const pid = Number(readLockFile(cluster)[0])
  const expectEnd = () => {
    phase = 'ending'
  }
  const closeWatchdog = program.end
  const name = nameProcess(pid)
  return { server: { pid, name, port, adopted: false, expectEnd, closeWatchdog } }
}

/** Returns the fatal error with its details, or the last lines of the output. */
export function extractFailure(output: string): string {
  const lines = output.split('\n').filter((line) => line.trim() !== '')
  const fatal = lines.filter((line) => /^(FATAL|PANIC|DETAIL|HINT):/.test(line))
  return (fatal.length > 0 ? fatal : lines.slice(-3)).join(' ') || 'it printed nothing'
}

function readLockFile(cluster: string): string[] {
  try {
    return readFileSync(join(cluster, LOCK_FILE), 'utf8').split('\n')
  } catch {
    return []
  }
}

// A server's watchdog is its parent; that of an adopted server is recorded in a link.
function isGuarded(cluster: string, server: number): boolean {
  const parent = readProcess(readProcess(server)?.parent ?? 0)
  if (parent && isWatchdog(parent.command)) return true
  try {
    return isSameProcess(readlinkSync(cluster + WATCHDOG_RECORD))
  } catch {
    return false
  }
}

function recordWatchdog(cluster: string, pid: number): void {
  rmSync(cluster + WATCHDOG_RECORD, { force: true })
  symlinkSync(nameProcess(pid), cluster + WATCHDOG_RECORD)
}

async function findFreePort(): Promise<number> {
  const probe = createServer().listen(0, '127.0.0.1')
  await once(probe, 'listening')
  const address = probe.address()
  probe.close()
  await once(probe, 'close')
  return typeof address === 'object' && address ? address.port : 0
}
