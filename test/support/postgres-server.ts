import { execFile, spawnSync } from 'node:child_process'
import { chownSync, existsSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import postgres from 'postgres'
import {
  buildSpawnOptions,
  prepareBinaries,
  runGuarded,
  type ServerUser,
} from '../../src/platform/postgres/embedded-binaries.ts'
import { findServerUser } from '../../src/platform/postgres/embedded-cluster.ts'
import { listChildren, readProcess, readServerPid, sendSignal } from './processes.ts'
import { waitUntil } from './wait-until.ts'

const run = promisify(execFile)

/** A Postgres server in a folder of its own. It ends with this process at the latest. */
export type PostgresServer = {
  port: number
  url: string
  /** The folder of the cluster; empty until it is created. */
  data: string
  /** Creates its cluster. */
  create(): Promise<void>
  /** Starts it; resolves when it answers. */
  start(): Promise<void>
  /** Sends SIGKILL to all its processes at once; resolves when they have ended. */
  kill(): Promise<void>
  /** Sends a signal to those of its processes whose title matches, by default to all. */
  signal(what: NodeJS.Signals, title?: RegExp): void
  /** Runs one of Postgres's programs on its cluster, as the server's user. */
  run(program: 'pg_basebackup' | 'pg_ctl', args: readonly string[]): Promise<void>
  /** Ends it without waiting for its clients. */
  stop(): Promise<void>
}

const SETTINGS = {
  listen_addresses: '127.0.0.1',
  unix_socket_directories: '',
  max_connections: '200',
  dynamic_shared_memory_type: 'mmap',
  lc_messages: 'C',
  wal_retrieve_retry_interval: '100ms',
}

/** Returns the folder with Debian's programs, or undefined if the server's packages are not installed. */
export function findDebianPrograms(): string | undefined {
  const found = spawnSync('pg_config', ['--bindir'], { encoding: 'utf8' }).stdout?.trim()
  const isInstalled = found && existsSync(join(found, 'pg_basebackup'))
  return isInstalled && existsSync(join(found, 'initdb')) ? found : undefined
}

/** Returns the folder with Debian's programs if they are installed, or else with the embedded ones. */
export function findPrograms(copies: string): string {
  const user: ServerUser = process.getuid?.() === 0 ? findServerUser() : {}
  return findDebianPrograms() ?? prepareBinaries(copies, user, () => {})
}

/**
 * Describes a server; nothing runs until `start`, and the cluster has to be created before that.
 * @param bin the folder with Postgres's programs
 * @param folder the parent of the cluster's folder; the server's user has to reach it
 * @param settings beside those of every test
 */
export function prepareServer(
  bin: string,
  folder: string,
  port: number,
  settings: Record<string, string> = {},
): PostgresServer {
  const user: ServerUser = process.getuid?.() === 0 ? findServerUser() : {}
  const data = join(folder, `data-${port}`)
  const url = `postgres://postgres@127.0.0.1:${port}/postgres`
  const command = [join(bin, 'postgres'), '-D', data, '-p', String(port)]
  for (const [name, value] of Object.entries({ ...SETTINGS, ...settings })) {
    command.push('-c', `${name}=${value}`)
  }
  let program: ReturnType<typeof runGuarded> | undefined
  let running = false

  mkdirSync(data, { mode: 0o700 })
  if (user.uid !== undefined && user.gid !== undefined) chownSync(data, user.uid, user.gid)
  const listProcesses = (): number[] => {
    // The file of a server that was killed stays, and its id may belong to another process by now.
    const server =
      running && existsSync(join(data, 'postmaster.pid')) ? readServerPid(data) : undefined
    return server === undefined ? [] : [server, ...listChildren(server)]
  }
  const runProgram = async (program: string, args: readonly string[]) => {
    await run(join(bin, program), ['-D', data, ...args], buildSpawnOptions(user))
  }
  return {
    port,
    url,
    data,
    create: () =>
      runProgram('initdb', ['-U', 'postgres', '-A', 'trust', '-E', 'UTF8', '--locale=C', '-N']),
    async start() {
      const isUp = async () => {
        if (!running) {
          running = true
          program = runGuarded(command, user)
          // Remains of a killed server can block the start for a moment.
          program.ended.then(() => {
            running = false
          })
        }
        return await answers(url)
      }
      const what = `Postgres answers on port ${port}`
      await waitUntil(isUp, { what, timeoutMs: 60_000, everyMs: 50 })
    },
    async kill() {
      for (const pid of listProcesses()) sendSignal(pid, 'SIGKILL')
      await program?.ended
    },
    signal(what, title = /^/) {
      for (const pid of listProcesses())
        if (title.test(readProcess(pid)?.command ?? '')) sendSignal(pid, what)
    },
    run: runProgram,
    async stop() {
      const [server] = listProcesses()
      for (const pid of listProcesses()) sendSignal(pid, 'SIGCONT')
      if (server !== undefined) sendSignal(server, 'SIGQUIT')
      await program?.ended
    },
  }
}

/** Runs one statement on a server, in a session of its own, and returns its rows. */
export async function ask<Row extends Record<string, unknown>>(
  url: string,
  statement: string,
): Promise<Row[]> {
  const sql = postgres(url, { max: 1, connect_timeout: 5, fetch_types: false, onnotice: () => {} })
  try {
    return [...(await sql.unsafe<Row[]>(statement))]
  } finally {
    await sql.end({ timeout: 1 })
  }
}

async function answers(url: string): Promise<boolean> {
  return await ask(url, 'select 1').then(
    () => true,
    () => false,
  )
}
