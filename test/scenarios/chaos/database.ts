import { execFile, spawnSync } from 'node:child_process'
import { chownSync, existsSync, mkdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import postgres from 'postgres'
import { prepareBinaries } from '../../../src/platform/postgres/embedded/binaries.ts'
import {
  buildSpawnOptions,
  findServerUser,
  type ServerUser,
} from '../../../src/platform/postgres/embedded/user.ts'
import { runGuarded } from '../../../src/platform/postgres/embedded/watchdog.ts'
import { listChildren } from '../../support/children.ts'
import { waitUntil } from '../../support/wait-until.ts'

const run = promisify(execFile)

/** A Postgres server with full durability that can be killed, paused and restarted. */
export type ChaosDatabase = {
  name: string
  port: number
  url: string
  start(): Promise<void>
  /** Sends SIGKILL to all its processes at once; resolves when they have ended. */
  kill(): Promise<void>
  /** Pauses all its processes, and resumes them. */
  pause(): void
  resume(): void
  stop(): Promise<void>
}

const SETTINGS = {
  listen_addresses: '127.0.0.1',
  unix_socket_directories: '',
  max_connections: '200',
  dynamic_shared_memory_type: 'mmap',
}

/** Creates a cluster in the folder and starts it, with Debian's programs if installed, else the embedded ones. */
export async function startChaosDatabase(folder: string, port: number): Promise<ChaosDatabase> {
  const user: ServerUser = process.getuid?.() === 0 ? findServerUser() : {}
  const debian = spawnSync('pg_config', ['--bindir'], { encoding: 'utf8' }).stdout?.trim()
  const isDebian = debian !== undefined && existsSync(join(debian, 'initdb'))
  const bin = isDebian
    ? debian
    : join(
        prepareBinaries(folder, user, () => {}),
        'bin',
      )
  const data = join(folder, 'data')
  mkdirSync(data, { mode: 0o700 })
  if (user.uid !== undefined && user.gid !== undefined) chownSync(data, user.uid, user.gid)
  const how = ['-D', data, '-U', 'postgres', '-A', 'trust', '-E', 'UTF8', '--locale=C']
  await run(join(bin, 'initdb'), how, buildSpawnOptions(user))
  const command = [join(bin, 'postgres'), '-D', data, '-p', String(port)]
  for (const [name, value] of Object.entries(SETTINGS)) command.push('-c', `${name}=${value}`)

  const url = `postgres://postgres@127.0.0.1:${port}/postgres`
  let program: ReturnType<typeof runGuarded> | undefined
  const listProcesses = (): number[] => {
    const server = readServerPid(data)
    return server === undefined ? [] : [server, ...listChildren(server)]
  }
  async function start(): Promise<void> {
    let running = false
    const isUp = async () => {
      if (!running) {
        running = true
        program = runGuarded(command, user)
        // Remains of the killed server can block the start for a moment.
        program.ended.then(() => {
          running = false
        })
      }
      return await answers(url)
    }
    await waitUntil(isUp, { what: 'Postgres answers', timeoutMs: 60_000, everyMs: 50 })
  }
  await start()
  return {
    name: `${isDebian ? "Debian's" : 'embedded'} Postgres ${await readVersion(url)}`,
    port,
    url,
    start,
    async kill() {
      for (const pid of listProcesses()) signal(pid, 'SIGKILL')
      await program?.ended
    },
    pause() {
      for (const pid of listProcesses()) signal(pid, 'SIGSTOP')
    },
    resume() {
      for (const pid of listProcesses()) signal(pid, 'SIGCONT')
    },
    async stop() {
      for (const pid of listProcesses()) signal(pid, 'SIGCONT')
      const [server] = listProcesses()
      if (server !== undefined) signal(server, 'SIGINT')
      await program?.ended
    },
  }
}

function readServerPid(data: string): number | undefined {
  const file = join(data, 'postmaster.pid')
  if (!existsSync(file)) return undefined
  const pid = Number(readFileSync(file, 'utf8').split('\n')[0])
  return Number.isSafeInteger(pid) && pid > 0 ? pid : undefined
}

/** A process may already be gone: Postgres ends its others once it notices that one was killed. */
function signal(pid: number, what: NodeJS.Signals): void {
  try {
    process.kill(pid, what)
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'ESRCH')) throw error
  }
}

async function answers(url: string): Promise<boolean> {
  return (await ask(url).catch(() => undefined)) !== undefined
}

async function readVersion(url: string): Promise<string> {
  return (await ask(url))?.version ?? ''
}

async function ask(url: string) {
  const sql = postgres(url, { max: 1, connect_timeout: 5, onnotice: () => {} })
  try {
    const [row] = await sql<{ version: string }[]>`
      select current_setting('server_version') as version`
    return row
  } finally {
    await sql.end({ timeout: 1 })
  }
}
