import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'

export type Started = { url: string; readyMs: number; child: ChildProcess; stop(): Promise<void> }

const ROOT = fileURLToPath(new URL('../..', import.meta.url))

/** Runs a source file as a process of its own, and waits for the line that says it is ready. */
export async function startProcess(
  file: string,
  env: Record<string, string>,
  isReady: (line: string) => boolean,
): Promise<Omit<Started, 'url'>> {
  const started = performance.now()
  const child = spawn(process.execPath, ['--import', 'tsx', file], {
    cwd: ROOT,
    env: { PATH: process.env.PATH, ...env },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
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
  role: 'all' | 'web' = 'all',
): Promise<Started> {
  const port = await findPort()
  const started = await startProcess(
    'src/main.ts',
    {
      PORT: String(port),
      ROLE: role,
      DATABASE_URL: databaseUrl,
      GATEWAY_BASE_URL: gatewayUrl,
      GATEWAY_MERCHANT_CODE: account.merchantCode,
      GATEWAY_SECRET: account.secret,
      API_KEY: account.apiKey,
      DATA_ENCRYPTION_KEY: Buffer.alloc(32, 1).toString('base64'),
    },
    (line) => line.includes('"msg":"ready"'),
  )
  return { ...started, url: `http://127.0.0.1:${port}` }
}

/** Resident memory of a process (MB), as the kernel counts it. */
export async function readRssMb(child: ChildProcess): Promise<number> {
  const status = await readFile(`/proc/${child.pid}/status`, 'utf8')
  return Number(/VmRSS:\s+(\d+)/.exec(status)?.[1] ?? 0) / 1024
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
