import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, openSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { waitUntil } from '../../support/wait-until.ts'

/** A program that is restarted whenever it ends, as by an orchestrator. */
export type Member = {
  name: string
  url: string
  port: number
  /** Starts it; resolves when it is ready. */
  start(): Promise<void>
  /** Resolves when it is ready, also after a restart. */
  untilReady(): Promise<void>
  /** Sends SIGKILL; it restarts by itself. */
  kill(): void
  freeze(): void
  thaw(): void
  /** Sends SIGTERM and does not restart it. Resolves with its exit code. */
  stop(): Promise<number | null>
}

export type MemberOptions = {
  name: string
  file: string
  port: number
  env: Record<string, string>
  /** The file for its output. */
  logFile: string
  /** The offset of its clock (ms), and the program that shifts it. */
  clock?: { program: string; shiftMs: number }
}

const ROOT = fileURLToPath(new URL('../../..', import.meta.url))
const PAUSE_MS = 200
/** It may be killed again and again while it starts, on a machine that others load. */
const READY_MS = 180_000

/** Describes a program of the project; nothing runs until `start`. */
export function prepareMember(options: MemberOptions): Member {
  const { name, file, port, env, logFile, clock } = options
  const url = `http://127.0.0.1:${port}`
  const loader = file.endsWith('.ts') ? ['--import', 'tsx'] : []
  const preload = clock ? ['--import', clock.program] : []
  let child: ChildProcess | undefined
  let wanted = false

  function launch(): void {
    const log = openSync(logFile, 'a')
    const launched = spawn(process.execPath, [...loader, ...preload, file], {
      cwd: ROOT,
      env: {
        PATH: process.env.PATH,
        CHAOS_CLOCK_SHIFT_MS: String(clock?.shiftMs ?? 0),
        PORT: String(port),
        SANDBOX_PORT: String(port),
        ...env,
      },
      stdio: ['ignore', log, log],
    })
    closeSync(log)
    child = launched
    launched.once('exit', () => {
      if (wanted) setTimeout(() => wanted && child === launched && launch(), PAUSE_MS)
    })
  }
  async function untilReady(): Promise<void> {
    const isReady = () =>
      fetch(`${url}/${file.includes('sandbox') ? 'healthz' : 'readyz'}`, {
        signal: AbortSignal.timeout(2_000),
      }).then(
        ({ ok }) => ok,
        () => false,
      )
    await waitUntil(isReady, { what: `${name} is ready`, timeoutMs: READY_MS, everyMs: 50 })
  }
  process.once('exit', () => child?.kill('SIGKILL'))
  return {
    name,
    url,
    port,
    async start() {
      wanted = true
      launch()
      await untilReady()
    },
    untilReady,
    kill: () => void child?.kill('SIGKILL'),
    freeze: () => void child?.kill('SIGSTOP'),
    thaw: () => void child?.kill('SIGCONT'),
    async stop() {
      wanted = false
      if (!child || child.exitCode !== null || child.signalCode !== null) return null
      const ended = once(child, 'exit')
      child.kill('SIGCONT')
      child.kill('SIGTERM')
      await ended
      return child.exitCode
    },
  }
}
