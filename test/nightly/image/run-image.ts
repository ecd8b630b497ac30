import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { listChildren } from '../../support/processes.ts'
import { waitUntil } from '../../support/wait-until.ts'
import type { ImageConfig } from './builder.ts'

/** A program of the image that runs as a container would run it. */
export type Contained = {
  /** Resolves with the exit code; null when a signal ended it. */
  ended: Promise<number | null>
  output(): string
  /** Sends the signal to process 1 of the container. */
  signal(what: NodeJS.Signals): void
}

/**
 * What a container runtime does, with the tools that every Linux has, because runtimes do not start on each machine: a file
 * system that is read-only, process ids of its own, the image's user without groups, no capabilities, and
 * no-new-privileges. The network is the machine's.
 */
const ENTER = `
set -eu
root=$1 user=$2
shift 2
mount --bind "$root" "$root"
mount -t proc proc "$root/proc"
mount -o remount,bind,ro "$root"
cd "$root"
exec setpriv --no-new-privs --inh-caps=-all \
  chroot --userspec="$user" --groups= "$root" /usr/bin/env --chdir="$WORKDIR" --unset=WORKDIR "$@"`

/**
 * Starts a program of the image.
 * @param folder the file system of a container made of the image
 * @param command replaces the entry point
 */
export function runImage(
  folder: string,
  config: ImageConfig,
  env: Record<string, string>,
  command: readonly string[] = config.Entrypoint,
): Contained {
  const child = spawn(
    'unshare',
    [
      ...['--mount', '--pid', '--fork', '--kill-child', '--propagation', 'private'],
      ...['sh', '-c', ENTER, 'sh', folder, config.User, ...command],
    ],
    {
      env: { ...readEnv(config), ...env, WORKDIR: config.WorkingDir },
      stdio: ['ignore', 'pipe', 'pipe'],
    },
  )
  let text = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (part) => {
      text += part
    })
  }
  return {
    ended: once(child, 'close').then(() => child.exitCode),
    output: () => text,
    signal: (what) => process.kill(findFirst(child), what),
  }
}

/** Runs a program of the image to its end. */
export async function runToEnd(
  ...given: Parameters<typeof runImage>
): Promise<{ code: number | null; output: string }> {
  const run = runImage(...given)
  const code = await run.ended
  return { code, output: run.output() }
}

/**
 * Waits for a line of a running program.
 * @returns what the first group of the pattern matched
 * @throws Error with its output if it ends before that
 */
export async function waitForLine(run: Contained, pattern: RegExp): Promise<string> {
  let code: number | null | undefined
  void run.ended.then((ended) => {
    code = ended
  })
  const isThere = () => pattern.test(run.output()) || code !== undefined
  await waitUntil(isThere, { what: `${pattern} in the output`, timeoutMs: 60_000 })
  const found = pattern.exec(run.output())?.[1]
  if (found === undefined) throw new Error(`it ended with ${code}: ${run.output()}`)
  return found
}

function readEnv({ Env }: ImageConfig): Record<string, string> {
  return Object.fromEntries(
    Env.map((line) => [line.slice(0, line.indexOf('=')), line.slice(line.indexOf('=') + 1)]),
  )
}

/** Signals sent to `unshare` itself do not reach the container. */
function findFirst({ pid = 0 }: ChildProcess): number {
  const [first] = listChildren(pid)
  if (first === undefined) throw new Error('the container has ended')
  return first
}
