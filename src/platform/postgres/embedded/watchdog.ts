import { type ChildProcess, spawn } from 'node:child_process'
import { Socket } from 'node:net'
import type { Readable, Writable } from 'node:stream'
import { buildSpawnOptions, type ServerUser } from './user.ts'

// A shell holds the other end of a pipe of this process. However this process dies, the pipe closes and
// `cat` ends; then the shell sends SIGINT (fast shutdown) until the program has ended, SIGQUIT (immediate)
// after 5 s. It repeats them, because a program that has just started does not handle signals yet.
const END_WITH_US = `cat >/dev/null
n=0 s=INT
while [ $n -lt 200 ] && is_there && kill -s $s $p; do
  sleep 0.1; n=$((n+1)); [ $n -lt 50 ] || s=QUIT
done`

const BEGIN = 'trap "" INT TERM HUP'

const RUN = `${BEGIN}
is_there() { :; }
"$@" & p=$!
exec 2>/dev/null
${END_WITH_US}
wait $p`

// $1 is no child of this shell, so by then its id may belong to another process: check the lock file.
const GUARD = `${BEGIN}
p=$1 f=$2
is_there() { read -r first < "$f" && [ "$first" = "$p" ]; }
exec 2>/dev/null
${END_WITH_US}`

export type GuardedProgram = {
  /** Exit status and the end of stderr, when the program and all processes it started have ended. */
  ended: Promise<{ status: number | null; output: string }>
  /** Lets this process exit while the program runs, which ends the program. */
  detach(): void
  /** Closes the pipe: the watchdog ends the program as if this process had died. */
  end(): void
}

/**
 * Runs a program that cannot outlive this process, in a session of its own (a terminal's Ctrl-C does not
 * reach it).
 * @param onLine receives each line of its stderr
 */
export function runGuarded(
  command: readonly string[],
  user: ServerUser,
  onLine: (line: string) => void = () => {},
): GuardedProgram {
  const child = spawn('/bin/sh', ['-c', RUN, 'watchdog', ...command], {
    ...buildSpawnOptions(user),
    detached: true,
    stdio: ['pipe', 'ignore', 'pipe'],
  })
  const { stdin, stderr } = child
  let output = ''
  let rest = ''
  stderr.setEncoding('utf8').on('data', (text: string) => {
    output = (output + text).slice(-8192)
    const lines = (rest + text).split('\n')
    rest = lines.pop() ?? ''
    for (const line of lines) onLine(line)
  })
  stderr.on('end', () => stdin.end())
  stdin.on('error', () => {})
  const ended = new Promise<{ status: number | null; output: string }>((resolve, reject) => {
    child.on('error', reject)
    child.on('close', (status) => resolve({ status, output }))
  })
  return { ended, detach: () => unref(child, stdin, stderr), end: () => stdin.end() }
}

export type Watchdog = { pid: number; end(): void }

/** Starts a watchdog that ends the server `pid`, which this process did not start, when this process dies. */
export function watchServer(pid: number, lockFile: string, user: ServerUser): Watchdog {
  const child = spawn('/bin/sh', ['-c', GUARD, 'watchdog', String(pid), lockFile], {
    ...buildSpawnOptions(user),
    detached: true,
    stdio: ['pipe', 'ignore', 'ignore'],
  })
  child.on('error', () => {})
  child.stdin.on('error', () => {})
  unref(child, child.stdin)
  if (child.pid === undefined)
    throw new Error('the watchdog of the database server could not be started')
  return { pid: child.pid, end: () => child.stdin.end() }
}

/** Returns whether a command line is that of a watchdog. */
export function isWatchdog(command: string): boolean {
  return command.startsWith(`/bin/sh -c ${BEGIN}`)
}

function unref(child: ChildProcess, ...streams: (Readable | Writable)[]): void {
  child.unref()
  for (const stream of streams) if (stream instanceof Socket) stream.unref()
}
