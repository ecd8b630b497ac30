import { spawnSync } from 'node:child_process'
import { existsSync, readdirSync, readFileSync } from 'node:fs'

type ProcessFacts = { pid: number; parent: number; command: string }

/** Reads what the system knows of a process; `undefined` once it has ended (a zombie has ended). */
export function readProcess(pid: number): ProcessFacts | undefined {
  return existsSync('/proc/self') ? readFromProc(pid) : readFromPs('-p', String(pid))[0]
}

/** The processes whose parent is `pid`. */
export function listChildren(pid: number): number[] {
  const all = existsSync('/proc/self')
    ? readdirSync('/proc').flatMap((name) => readFromProc(Number(name)) ?? [])
    : readFromPs('-A')
  return all.filter(({ parent }) => parent === pid).map((one) => one.pid)
}

/** Reads which process runs a Postgres server, by the lock file in its folder. */
export function readServerPid(folder: string): number {
  return Number(readFileSync(`${folder}/postmaster.pid`, 'utf8').split('\n')[0])
}

/** It may already be gone: Postgres ends its other processes once it notices that one was killed. */
export function sendSignal(pid: number, what: NodeJS.Signals): void {
  try {
    process.kill(pid, what)
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'ESRCH')) throw error
  }
}

function readFromProc(pid: number): ProcessFacts | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    const command = readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ').trim()
    // The second field, the name, may contain spaces and parentheses: count from the last parenthesis.
    const [state = 'X', parent] = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    return /[ZX]/.test(state) ? undefined : { pid, parent: Number(parent), command }
  } catch {
    return undefined
  }
}

function readFromPs(...which: string[]): ProcessFacts[] {
  const args = ['-ww', '-o', 'pid=,ppid=,stat=,args=', ...which]
  const { stdout } = spawnSync('/bin/ps', args, { encoding: 'utf8', env: { LC_ALL: 'C' } })
  const lines = [...stdout.matchAll(/^\s*(\d+)\s+(\d+)\s+[^Z\s]\S*\s+(.*?)\s*$/gm)]
  return lines.map(([, pid, parent, command = '']) => {
    return { pid: Number(pid), parent: Number(parent), command }
  })
}
