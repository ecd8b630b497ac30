import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'

export type ProcessFacts = {
  parent: number
  /** Distinguishes a process from a later one with the same id; only for comparison. */
  startedAt: string
  command: string
}

/** Reads what the system knows of a process; `undefined` once it has ended (a zombie has ended). */
export function readProcess(pid: number): ProcessFacts | undefined {
  return process.platform === 'linux' ? readFromProc(pid) : readFromPs(pid)
}

/** Names a running process uniquely among all earlier and later ones on this machine. */
export function nameProcess(pid: number): string {
  return `${pid}@${readProcess(pid)?.startedAt}`
}

/** Returns whether the process of that name is running. */
export function isSameProcess(name: string): boolean {
  const pid = Number.parseInt(name, 10)
  return readProcess(pid) !== undefined && nameProcess(pid) === name
}

/** Reads one line of `ps -o ppid=,stat=,lstart=,command=`; `undefined` for a zombie or no line. */
export function parsePsLine(line: string): ProcessFacts | undefined {
  const match = /^\s*(\d+)\s+([^Z\s]\S*)\s+(\w+\s+\w+\s+\w+\s+[\d:]+\s+\d+)\s+(.*?)\s*$/s.exec(line)
  if (!match) return undefined
  const [, parent, , started = '', command = ''] = match
  return { parent: Number(parent), startedAt: started.replaceAll(/\s+/g, '_'), command }
}

function readFromProc(pid: number): ProcessFacts | undefined {
  const stat = readText(`/proc/${pid}/stat`)
  const command = readText(`/proc/${pid}/cmdline`)
  if (stat === undefined || command === undefined) return undefined
  // The second field, the name, may contain spaces and parentheses: count from the last parenthesis.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  const [state = 'X', parent] = fields
  if (state === 'Z' || state === 'X') return undefined
  return {
    parent: Number(parent),
    startedAt: `${readText('/proc/sys/kernel/random/boot_id')?.trim()}.${fields[19]}`,
    command: command.replaceAll('\0', ' ').trim(),
  }
}

function readFromPs(pid: number): ProcessFacts | undefined {
  const columns = 'ppid=,stat=,lstart=,command='
  const { stdout } = spawnSync('/bin/ps', ['-ww', '-o', columns, '-p', String(pid)], {
    encoding: 'utf8',
    env: { LC_ALL: 'C', TZ: 'UTC' },
  })
  return parsePsLine(stdout ?? '')
}

function readText(file: string): string | undefined {
  try {
    return readFileSync(file, 'utf8')
  } catch {
    return undefined
  }
}
