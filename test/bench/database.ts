import { execFile, spawnSync } from 'node:child_process'
import { access, chmod, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import postgres from 'postgres'
import { startEmbeddedPostgres } from '../../src/platform/postgres/embedded/start.ts'
import { findPort } from './processes.ts'

const run = promisify(execFile)

export type BenchDatabase = {
  url: string
  /** What it is, for the report. */
  name: string
  /** The folder of its programs (`pgbench`), where it has them. */
  bindir: string | undefined
  sql: postgres.Sql
  stop(): Promise<void>
}

/** A server of the bench's own with every durability on: Debian's if it is installed, else the embedded one. */
export async function startBenchDatabase(): Promise<BenchDatabase> {
  const found = spawnSync('pg_config', ['--bindir'], { encoding: 'utf8' }).stdout?.trim()
  const bindir = found && (await exists(join(found, 'initdb'))) ? found : undefined
  return bindir ? await startDebian(bindir) : await startEmbedded()
}

async function startEmbedded(): Promise<BenchDatabase> {
  const folder = await mkdtemp(join(tmpdir(), 'ipn-bench-'))
  const server = await startEmbeddedPostgres({ dataDir: folder })
  const sql = postgres(server.url, { max: 2, onnotice: () => {} })
  return {
    url: server.url,
    name: await describe(sql, 'embedded'),
    bindir: undefined,
    sql,
    async stop() {
      await sql.end()
      await server.stop()
      await rm(folder, { recursive: true, force: true })
    },
  }
}

async function startDebian(bindir: string): Promise<BenchDatabase> {
  const folder = await mkdtemp(join(tmpdir(), 'ipn-bench-'))
  const isRoot = process.getuid?.() === 0
  // Postgres refuses to run as root.
  const asServer = (program: string, ...args: string[]) =>
    isRoot
      ? run('runuser', ['-u', 'postgres', '--', join(bindir, program), ...args])
      : run(join(bindir, program), args)
  await chmod(folder, 0o777)
  const data = join(folder, 'data')
  await asServer('initdb', '-D', data, '-U', 'postgres', '-A', 'trust', '-E', 'UTF8', '--locale=C')
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
  await asServer(
    'pg_ctl',
    '-D',
    data,
    '-w',
    '-l',
    join(folder, 'log'),
    '-o',
    options.join(' '),
    'start',
  )
  const url = `postgres://postgres@127.0.0.1:${port}/postgres`
  const sql = postgres(url, { max: 2, onnotice: () => {} })
  return {
    url,
    name: await describe(sql, "Debian's"),
    bindir,
    sql,
    async stop() {
      await sql.end()
      await asServer('pg_ctl', '-D', data, '-m', 'immediate', 'stop')
      await rm(folder, { recursive: true, force: true })
    },
  }
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

/** Bytes of a table with its indexes. */
export async function measureTable(sql: postgres.Sql, table: string): Promise<number> {
  const [row] = await sql`select pg_total_relation_size(${table}::regclass)::float8 as bytes`
  return row?.bytes
}
