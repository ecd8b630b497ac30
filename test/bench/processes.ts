import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import postgres from 'postgres'
import { pickPort } from '../support/ports.ts'
import { findBuilt } from './build.ts'
import { keepChild } from './children.ts'
import { ACCOUNT } from './notifications.ts'

export type Started = { url: string; readyMs: number; child: ChildProcess; stop(): Promise<void> }

/** How to see that a process is ready, by default the line `ready`, and arguments for Node. */
type Start = { isReady?: (line: string) => boolean; nodeArgs?: readonly string[] }

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const STOP_MS = 15_000

/** Runs a file as a process of its own, a source or a compiled one, and waits for the line that says it is ready. */
export async function startProcess(
  file: string,
  env: Record<string, string>,
  { isReady, nodeArgs = [] }: Start = {},
): Promise<Omit<Started, 'url'>> {
  const started = performance.now()
  const loader = file.endsWith('.ts') ? ['--import', 'tsx'] : []
  const child = keepChild(
    spawn(process.execPath, [...nodeArgs, ...loader, file], {
      cwd: ROOT,
      env: { PATH: process.env.PATH, ...env },
      stdio: ['ignore', 'pipe', 'inherit'],
    }),
  )
  const exited = once(child, 'exit')
  await new Promise<void>((resolve, reject) => {
    child.once('exit', (code) => reject(new Error(`${file} ended with ${code}`)))
    const isLast = isReady ?? ((line) => line === 'ready')
    createInterface({ input: child.stdout }).on('line', (line) => isLast(line) && resolve())
  })
  return {
    readyMs: performance.now() - started,
    child,
    async stop() {
      resume({ child })
      child.kill('SIGTERM')
      const timer = setTimeout(() => child.kill('SIGKILL'), STOP_MS)
      await exited
      clearTimeout(timer)
    },
  }
}

/** Lets a process sleep, or go on: of several that would share the work, only one is measured. */
export function pause({ child }: Pick<Started, 'child'>): void {
  child.kill('SIGSTOP')
}

export function resume({ child }: Pick<Started, 'child'>): void {
  child.kill('SIGCONT')
}

/**
 * The service, compiled, with its public settings.
 * @param settings beside those, or in their place; empty counts as not set
 * @param profiles the folder where the process leaves its CPU profile
 */
export async function startService(
  databaseUrl: string,
  gatewayUrl: string,
  role: 'web' | 'worker' | 'all',
  profiles: string | undefined,
  settings: Record<string, string> = {},
): Promise<Started> {
  const port = await pickPort()
  const env = {
    ...makeEnv(databaseUrl, gatewayUrl),
    PORT: port,
    ROLE: role,
    DATA_ENCRYPTION_KEY: Buffer.alloc(32, 1).toString('base64'),
    GATEWAY_REFUND_DEDUPES: 'true',
    // What the fill stored long ago is not to be removed while something else is measured.
    RETENTION_DAYS: '36500',
    ...settings,
  }
  const started = await startProcess(findBuilt('src/main.ts'), env, {
    isReady: (line) => line.includes('"msg":"ready"'),
    nodeArgs: profiles ? ['--cpu-prof', `--cpu-prof-dir=${profiles}`] : [],
  })
  await liftKeyLimits(databaseUrl)
  return { ...started, url: `http://127.0.0.1:${port}` }
}

/** Load clients send more with one key than an order system may. */
async function liftKeyLimits(databaseUrl: string): Promise<void> {
  const sql = postgres(databaseUrl, { max: 1, onnotice: () => {} })
  await sql`update actors set rate_per_minute = 100000000 where name = 'first'`
  await sql.end()
}

/** A program of `baselines`. */
export async function startBaseline(
  name: string,
  databaseUrl: string,
  gatewayUrl: string,
): Promise<Started> {
  const port = await pickPort()
  const env = { ...makeEnv(databaseUrl, gatewayUrl), PORT: port }
  const started = await startProcess(findBuilt(`test/bench/baselines/${name}.ts`), env)
  return { ...started, url: `http://127.0.0.1:${port}` }
}

export async function startGateway(delayMs: number): Promise<Started> {
  const port = await pickPort()
  const env = { PORT: port, DELAY_MS: String(delayMs) }
  const started = await startProcess(findBuilt('test/bench/gateway.ts'), env)
  return { ...started, url: `http://127.0.0.1:${port}` }
}

export function makeEnv(databaseUrl: string, gatewayUrl: string) {
  return {
    DATABASE_URL: databaseUrl,
    GATEWAY_BASE_URL: gatewayUrl,
    GATEWAY_MERCHANT_CODE: ACCOUNT.merchantCode,
    GATEWAY_SECRET: ACCOUNT.secret,
    API_KEY: ACCOUNT.apiKey,
  }
}
