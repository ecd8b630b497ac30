import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdir, readFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import type postgres from 'postgres'
import { findBuilt } from './build.ts'

export type Started = { url: string; readyMs: number; child: ChildProcess; stop(): Promise<void> }

const ROOT = fileURLToPath(new URL('../..', import.meta.url))

/** Runs a file as a process of its own, a source or a compiled one, and waits for the line that says it is ready. */
export async function startProcess(
  file: string,
  env: Record<string, string>,
  isReady: (line: string) => boolean,
  nodeArgs: readonly string[] = [],
): Promise<Omit<Started, 'url'>> {
  const started = performance.now()
  const child = spawn(
    process.execPath,
    [...nodeArgs, ...(file.endsWith('.ts') ? ['--import', 'tsx'] : []), file],
    {
      cwd: ROOT,
      env: { PATH: process.env.PATH, ...env },
      stdio: ['ignore', 'pipe', 'inherit'],
    },
  )
  const exited = once(child, 'exit')
  await new Promise<void>((resolve, reject) => {
    child.once('exit', (code) => reject(new Error(`${file} ended with ${code}`)))
    createInterface({ input: child.stdout }).on('line', (line) => isReady(line) && resolve())
  })
  return {
    readyMs: performance.now() - started,
    child,
    async stop() {
      child.kill('SIGTERM')
      await exited
    },
  }
}

/** The production processor on a database and a gateway. */
export async function startProcessor(
  databaseUrl: string,
  gatewayUrl: string,
  account: { merchantCode: string; secret: string; apiKey: string },
  role: 'all' | 'web' | 'worker' = 'all',
  profiles?: string,
): Promise<Started> {
  const port = await findPort()
  const started = await startProcess(
    findBuilt('src/main.ts'),
    {
      PORT: String(port),
      ROLE: role,
      DATABASE_URL: databaseUrl,
      GATEWAY_BASE_URL: gatewayUrl,
      GATEWAY_MERCHANT_CODE: account.merchantCode,
      GATEWAY_SECRET: account.secret,
      API_KEY: account.apiKey,
      DATA_ENCRYPTION_KEY: Buffer.alloc(32, 1).toString('base64'),
      GATEWAY_REFUND_DEDUPES: 'true',
      // What the fill stored long ago is not to be removed while something else is measured.
      RETENTION_DAYS: '36500',
    },
    (line) => line.includes('"msg":"ready"'),
    profiles ? ['--cpu-prof', `--cpu-prof-dir=${profiles}`] : [],
  )
  return { ...started, url: `http://127.0.0.1:${port}` }
}

/** Resident memory of a process (MB), as the kernel counts it. */
export async function readRssMb(child: ChildProcess): Promise<number> {
  const status = await readFile(`/proc/${child.pid}/status`, 'utf8')
  return Number(/VmRSS:\s+(\d+)/.exec(status)?.[1] ?? 0) / 1024
}

/** CPU used so far (ms): by a process, and by the whole Postgres server. */
export async function measureCpuMs(
  child: ChildProcess,
  sql: postgres.Sql,
): Promise<{ own: number; database: number }> {
  const [row] = await sql`select pg_backend_pid() as pid`
  const { parent } = await readStat(row?.pid)
  const processes = (await readdir('/proc')).filter((name) => /^\d+$/.test(name)).map(Number)
  const stats = await Promise.all(processes.map((pid) => readStat(pid)))
  const backends = stats.filter((stat) => stat.parent === parent)
  const postmaster = await readStat(parent)
  const alive = backends.reduce((total, { cpuMs }) => total + cpuMs, 0)
  return {
    own: (await readStat(child.pid ?? 0)).cpuMs,
    database: alive + postmaster.cpuMs + postmaster.endedChildrenMs,
  }
}

async function readStat(pid: number) {
  const text = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => '')
  const fields = text
    .slice(text.lastIndexOf(')') + 2)
    .split(' ')
    .map(Number)
  const ticks = (from: number) => ((fields[from] ?? 0) + (fields[from + 1] ?? 0)) * 10
  return { parent: fields[1] ?? 0, cpuMs: ticks(11), endedChildrenMs: ticks(13) }
}

export async function findPort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  server.close()
  await once(server, 'close')
  if (typeof address !== 'object' || address === null) throw new Error('no port')
  return address.port
}
