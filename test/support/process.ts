import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { inject, onTestFinished } from 'vitest'
import { watchProcess } from './conformance/watch.ts'
import { KEY, MERCHANT } from './service.ts'

/** The service or the sandbox gateway in a separate process. */
export type ServiceProcess = {
  url: string
  child: ChildProcess
  /** Resolves with the exit code; null when a signal ended it. */
  ended: Promise<number | null>
  output(): { out: string; err: string }
}

type Environment = Record<string, string>

/** Runs the service with exactly this environment; kills it after the test if it still runs. */
export function runMain(
  env: Environment,
  args: readonly string[] = [],
): Omit<ServiceProcess, 'url'> {
  return runNode([inject('programs').service, ...args], env)
}

/** Runs Node with exactly this environment; kills it after the test if it still runs. */
export function runNode(args: readonly string[], env: Environment): Omit<ServiceProcess, 'url'> {
  const root = fileURLToPath(new URL('../..', import.meta.url))
  const child = spawn(process.execPath, args, {
    cwd: root,
    env: { PATH: process.env.PATH ?? '', ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const written = { out: '', err: '' }
  child.stdout.setEncoding('utf8').on('data', (text) => {
    written.out += text
  })
  child.stderr.setEncoding('utf8').on('data', (text) => {
    written.err += text
  })
  const ended = once(child, 'close').then(() => child.exitCode)
  onTestFinished(async () => {
    if (child.exitCode === null && child.signalCode === null) child.kill('SIGKILL')
    await ended
  })
  return { child, ended, output: () => written }
}

/** Settings of a production-like process on a test's database and sandbox. */
export function settingsFor(databaseUrl: string, gatewayUrl: string): Environment {
  return {
    PORT: '0',
    LOG_LEVEL: 'info',
    DATABASE_URL: databaseUrl,
    GATEWAY_BASE_URL: gatewayUrl,
    GATEWAY_MERCHANT_CODE: MERCHANT.merchantCode,
    GATEWAY_SECRET: MERCHANT.secret,
    DATA_ENCRYPTION_KEY: Buffer.alloc(32, 7).toString('base64'),
    GATEWAY_REFUND_DEDUPES: 'true',
    API_KEY: KEY,
  }
}

/**
 * Starts the service and waits until it logs that it is ready.
 * @throws Error with its output if it ends before that
 */
export async function startServiceProcess(env: Environment): Promise<ServiceProcess> {
  const service = await untilReady(runMain(env), /"url":"([^"]+)".*"ready"/)
  await watchProcess(service.url)
  return service
}

/** The same, and how to stop it: with its exit code. */
export async function startMain(env: Environment) {
  const { url, child, ended } = await startServiceProcess(env)
  async function stop(): Promise<number | null> {
    child.kill('SIGTERM')
    return await ended
  }
  return { url, stop }
}

/**
 * Starts the sandbox gateway and waits for its address.
 * @throws Error with its output if it ends before that
 */
export function startSandboxProcess(env: Environment): Promise<ServiceProcess> {
  return untilReady(runNode([inject('programs').sandbox], env), /^Address +(\S+)/m)
}

/** @param announced matches the line with the address that it prints once it listens */
async function untilReady(
  process: Omit<ServiceProcess, 'url'>,
  announced: RegExp,
): Promise<ServiceProcess> {
  const url = await new Promise<string>((resolve, reject) => {
    process.child.stdout?.on('data', () => {
      const found = announced.exec(process.output().out)?.[1]
      if (found) resolve(found)
    })
    process.ended.then(() => reject(new Error(`it ended: ${process.output().err}`)))
  })
  return { ...process, url }
}
