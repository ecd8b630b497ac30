import { execFile, spawnSync } from 'node:child_process'
import { rmSync } from 'node:fs'
import { access, chmod, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import postgres from 'postgres'
import { startEmbeddedPostgres } from '../../src/platform/postgres/embedded.ts'
import { findPort } from '../support/ports.ts'
import { keepCleanup } from './processes.ts'

const run = promisify(execFile)

/** One database of the bench's server. */
export type Database = { url: string; sql: postgres.Sql }

export type Server = {
  /** What it is, for the report. */
  name: string
  /** The first database: the service's. */
  main: Database
  /** Creates another database. */
  create(name: string): Promise<Database>
  drop(database: Database): Promise<void>
  stop(): Promise<void>
}

/** A server of the bench's own with every durability on: Debian's if it is installed, else the embedded one. */
export async function startServer(): Promise<Server> {
  const found = spawnSync('pg_config', ['--bindir'], { encoding: 'utf8' }).stdout?.trim()
  const bindir = found && (await exists(join(found, 'initdb'))) ? found : undefined
  const folder = await mkdtemp(join(tmpdir(), 'ipn-bench-'))
  return bindir ? await startDebian(bindir, folder) : await startEmbedded(folder)
}

async function startEmbedded(folder: string): Promise<Server> {
  // It stops by itself when this process ends.
  const server = await startEmbeddedPostgres({ dataDir: folder })
  return await open(server.url, 'embedded', async () => {
    await server.stop()
    await rm(folder, { recursive: true, force: true })
  })
}

async function startDebian(bindir: string, folder: string): Promise<Server> {
  // Postgres refuses to run as root.
  const user = process.getuid?.() === 0 ? ['runuser', '-u', 'postgres', '--'] : []
  const command = (program: string, ...args: string[]) => {
    const [file = '', ...rest] = [...user, join(bindir, program), ...args]
    return [file, rest] as const
  }
  await chmod(folder, 0o777)
  const data = join(folder, 'data')
  const log = join(folder, 'log')
  const stop = command('pg_ctl', '-D', data, '-m', 'immediate', 'stop')
  const forget = keepCleanup(() => {
    spawnSync(...stop)
    rmSync(folder, { recursive: true, force: true })
  })
  await run(
    ...command('initdb', '-D', data, '-U', 'postgres', '-A', 'trust', '-E', 'UTF8', '--locale=C'),
  )
  const port = await findPort()
  const settings = {
    port,
    listen_addresses: '127.0.0.1',
    unix_socket_directories: '',
    max_connections: 300,
    shared_buffers: '1GB',
    max_wal_size: '8GB',
  }
  const options = Object.entries(settings).map(([name, value]) => `-c ${name}=${value}`)
  await run(...command('pg_ctl', '-D', data, '-w', '-l', log, '-o', options.join(' '), 'start'))
  return await open(`postgres://postgres@127.0.0.1:${port}/postgres`, "Debian's", async () => {
    await run(...stop)
    await rm(folder, { recursive: true, force: true })
    forget()
  })
}

async function open(url: string, whose: string, stop: () => Promise<void>): Promise<Server> {
  const main = connect(url)
  const opened = new Set([main])
  const close = async (database: Database) => {
    opened.delete(database)
    await database.sql.end()
  }
  return {
    name: await describe(main.sql, whose),
    main,
    async create(name) {
      await main.sql.unsafe(`create database ${name}`)
      const address = new URL(url)
      address.pathname = `/${name}`
      const database = connect(address.href)
      opened.add(database)
      return database
    },
    async drop(database) {
      await close(database)
      await main.sql.unsafe(`drop database ${new URL(database.url).pathname.slice(1)} with (force)`)
    },
    async stop() {
      for (const database of opened) await close(database)
      await stop()
    },
  }
}

function connect(url: string): Database {
  return { url, sql: postgres(url, { max: 2, onnotice: () => {} }) }
}

async function describe(sql: postgres.Sql, whose: string): Promise<string> {
  const [row] = await sql`
    select current_setting('server_version') as version, current_setting('fsync') as fsync,
      current_setting('synchronous_commit') as commit`
  return `${whose} Postgres ${row?.version}, fsync ${row?.fsync}, synchronous_commit ${row?.commit}`
}

async function exists(path: string): Promise<boolean> {
  return await access(path).then(
    () => true,
    () => false,
  )
}
