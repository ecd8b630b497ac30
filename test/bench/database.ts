import { rmSync } from 'node:fs'
import { chmod, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import postgres from 'postgres'
import { startEmbeddedPostgres } from '../../src/platform/postgres/embedded.ts'
import { findPort } from '../support/ports.ts'
import { findDebianPrograms, prepareServer } from '../support/postgres-server.ts'
import { keepCleanup } from './processes.ts'

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
  const folder = await mkdtemp(join(tmpdir(), 'ipn-bench-'))
  await chmod(folder, 0o755)
  const forget = keepCleanup(() => rmSync(folder, { recursive: true, force: true }))
  const programs = findDebianPrograms()
  // Either ends with this process.
  const server = programs ? await startDebian(programs, folder) : await startEmbedded(folder)
  return await open(server.url, programs ? "Debian's" : 'embedded', async () => {
    await server.stop()
    await rm(folder, { recursive: true, force: true })
    forget()
  })
}

const startEmbedded = (folder: string) => startEmbeddedPostgres({ dataDir: join(folder, 'data') })

async function startDebian(programs: string, folder: string) {
  const settings = { max_connections: '300', shared_buffers: '1GB', max_wal_size: '8GB' }
  const server = prepareServer(programs, folder, await findPort(), settings)
  await server.create()
  await server.start()
  return server
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
