import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { rm, symlink } from 'node:fs/promises'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import postgres from 'postgres'
import { pickPort } from '../support/ports.ts'
import { ACCOUNT } from './notifications.ts'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const BUILT = join(ROOT, 'bench-results/build')

/** Compiles service, baselines and load as a production image does: what runs sources makes each closure dearer. */
export async function build(): Promise<void> {
  await rm(BUILT, { recursive: true, force: true })
  const options = ['--noEmit', 'false', '--allowJs', '--rootDir', ROOT, '--outDir', BUILT]
  await promisify(execFile)(join(ROOT, 'node_modules/.bin/tsc'), ['-p', ROOT, ...options])
  await symlink(join(ROOT, 'migrations'), join(BUILT, 'migrations'))
}

/** Where a source file's compiled form lies. */
export function findBuilt(source: string): string {
  return join(BUILT, source.replace(/\.ts$/, '.js'))
}

/** What has to be undone when this process ends: its children, and its servers and folders. */
const children = new Set<ChildProcess>()
const cleanups = new Set<() => void>()

/** Lets a child not outlive this process. */
export function keepChild<T extends ChildProcess>(child: T): T {
  children.add(child)
  child.once('exit', () => children.delete(child))
  return child
}

/** Runs `cleanup`, which must be synchronous, if this process ends before the returned function is called. */
export function keepCleanup(cleanup: () => void): () => void {
  cleanups.add(cleanup)
  return () => cleanups.delete(cleanup)
}

/** However this process ends from now on, it leaves no process, server or folder of the bench behind. */
export function stopOnExit(): void {
  process.on('exit', () => {
    // One that is stopped by SIGSTOP gets no other signal.
    for (const child of children) child.kill('SIGKILL')
    for (const cleanup of cleanups) cleanup()
  })
  for (const [signal, code] of Object.entries({ SIGHUP: 129, SIGINT: 130, SIGTERM: 143 })) {
    process.on(signal, () => process.exit(code))
  }
}

export type Started = { url: string; readyMs: number; child: ChildProcess; stop(): Promise<void> }

/** How to see that a process is ready, by default the line `ready`, and arguments for Node. */
type Start = { isReady?: (line: string) => boolean; nodeArgs?: readonly string[] }

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
 * @param profiles the folder where the process leaves its CPU profile
 */
export async function startService(
  databaseUrl: string,
  gatewayUrl: string,
  role: 'web' | 'worker',
  profiles: string | undefined,
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

const POLL_MS = 10

/** Begins to count the calls of a gateway. */
export async function resetCalls(gateway: Started): Promise<void> {
  await (await fetch(`${gateway.url}/calls`, { method: 'POST' })).arrayBuffer()
}

/** Waits until the gateway has had so many calls of a command: asking it costs the database nothing. */
export async function untilCalled(
  gateway: Started,
  command: 'QUERY_PT' | 'REFUND',
  count: number,
): Promise<void> {
  for (;;) {
    const answer = await fetch(`${gateway.url}/calls`)
    const calls: Record<typeof command, number> = JSON.parse(await answer.text())
    if (calls[command] >= count) return
    await sleep(POLL_MS)
  }
}
