import { EventEmitter, once } from 'node:events'
import { readFileSync, readlinkSync, rmSync, symlinkSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import type { Place } from './files.ts'
import { isSameProcess, nameProcess, readProcess } from './processes.ts'
import { guard, isWatchdog, runGuarded } from './watchdog.ts'

export type Server = {
  pid: number
  /** The process and no later one with its id. */
  name: string
  port: number
  adopted: boolean
  /** From now on its end is no news. */
  expectEnd(): void
  closeWatchdog(): void
}

export type RunningServer = {
  pid: number
  port: number
  /** `orphaned`: ready, and nothing will end it. `ending` also stands for starting. */
  state: 'orphaned' | 'ending'
}

export type LaunchResult = { server: Server } | { failure: string; passing: boolean }

const LOCK_FILE = 'postmaster.pid'
const GUARD_RECORD = '.guard'
const SETTINGS = {
  listen_addresses: '127.0.0.1',
  unix_socket_directories: '',
  max_connections: '100',
  shared_buffers: '64MB',
  // Containers give /dev/shm 64 MB or nothing.
  dynamic_shared_memory_type: 'mmap',
  timezone: 'UTC',
  log_timezone: 'UTC',
  // What reaches our log: no statements and no values, only that the server is in trouble.
  lc_messages: 'C',
  log_line_prefix: '',
  log_min_messages: 'log',
  log_min_error_statement: 'panic',
  log_checkpoints: 'off',
}
/** Gone by itself, or gone with another port. */
const PASSING = /lock file ".*" already exists|still in use|could not create any TCP\/IP sockets/

/** The process is a Postgres server and runs this cluster. */
function isServer(pid: number, cluster: string): boolean {
  const command = readProcess(pid)?.command ?? ''
  return command.includes(`/postgres -D ${cluster} -`) && !isWatchdog(command)
}

/** The server that still runs this cluster, of whichever process; `undefined` if none does. */
export function findServer(cluster: string): RunningServer | undefined {
  const lines = readLockFile(cluster)
  const pid = Number(lines[0])
  if (!Number.isSafeInteger(pid) || !isServer(pid, cluster)) return undefined
  const isOrphan = lines[7]?.trim() === 'ready' && !isGuarded(cluster, pid)
  return { pid, port: Number(lines[3]), state: isOrphan ? 'orphaned' : 'ending' }
}

/** Takes over a server whose process was killed together with its watchdog. */
export function adoptServer(place: Place, { pid, port }: RunningServer): Server {
  const watchdog = guard(pid, join(place.cluster, LOCK_FILE), place.user)
  recordGuard(place.cluster, watchdog.pid)
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
 * Starts the server on a free port; resolves when it takes connections, or has ended instead:
 * `passing` says that another try may go better.
 */
export async function launchServer(
  place: Place,
  settings: Record<string, string>,
  log: (line: string) => void,
): Promise<LaunchResult> {
  const port = await findFreePort()
  const command = [join(place.bin, 'postgres'), '-D', place.cluster, '-p', String(port)]
  for (const [name, value] of Object.entries({ ...SETTINGS, ...settings })) {
    command.push('-c', `${name}=${value}`)
  }
  const news = new EventEmitter<{ ready: [] }>()
  let phase: 'starting' | 'running' | 'ending' = 'starting'
  const program = runGuarded(command, place.user, (line) => {
    if (line.includes('ready to accept connections')) news.emit('ready')
    else if (phase === 'running' && /^(FATAL|PANIC):/.test(line)) log(`database server: ${line}`)
  })
  const end = await Promise.race([once(news, 'ready').then(() => undefined), program.ended])
  if (end) {
    const failure = explain(end.output)
    return { failure, passing: PASSING.test(failure) }
  }
  phase = 'running'
  program.detach()
  program.ended.then(() => {
    if (phase === 'running') log('the database server has ended by itself: start this process anew')
  })
  const pid = Number(readLockFile(place.cluster)[0])
  const expectEnd = () => {
    phase = 'ending'
  }
  const closeWatchdog = program.end
  const name = nameProcess(pid)
  return { server: { pid, name, port, adopted: false, expectEnd, closeWatchdog } }
}

/** The fatal line with its details, or what was said last. */
export function explain(output: string): string {
  const lines = output.split('\n').filter((line) => line.trim() !== '')
  const fatal = lines.filter((line) => /^(FATAL|PANIC|DETAIL|HINT):/.test(line))
  return (fatal.length > 0 ? fatal : lines.slice(-3)).join(' ') || 'it said nothing'
}

function readLockFile(cluster: string): string[] {
  try {
    return readFileSync(join(cluster, LOCK_FILE), 'utf8').split('\n')
  } catch {
    return []
  }
}

// A server's watchdog is its parent, except for one that was adopted: that one's is written down.
function isGuarded(cluster: string, server: number): boolean {
  const parent = readProcess(readProcess(server)?.parent ?? 0)
  if (parent && isWatchdog(parent.command)) return true
  try {
    return isSameProcess(readlinkSync(cluster + GUARD_RECORD))
  } catch {
    return false
  }
}

function recordGuard(cluster: string, pid: number): void {
  rmSync(cluster + GUARD_RECORD, { force: true })
  symlinkSync(nameProcess(pid), cluster + GUARD_RECORD)
}

async function findFreePort(): Promise<number> {
  const probe = createServer().listen(0, '127.0.0.1')
  await once(probe, 'listening')
  const address = probe.address()
  probe.close()
  await once(probe, 'close')
  return typeof address === 'object' && address ? address.port : 0
}
