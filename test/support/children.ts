import { spawnSync } from 'node:child_process'
import { existsSync, readdirSync } from 'node:fs'
import { readProcess } from '../../src/platform/postgres/embedded/processes.ts'

/** The processes whose parent is `pid`. */
export function listChildren(pid: number): number[] {
  if (existsSync('/proc/self')) {
    return readdirSync('/proc')
      .map(Number)
      .filter((other) => other > 0 && readProcess(other)?.parent === pid)
  }
  const { stdout } = spawnSync('/bin/ps', ['-A', '-o', 'pid=,ppid='], { encoding: 'utf8' })
  const rows = stdout.split('\n').map((line) => line.trim().split(/\s+/).map(Number))
  return rows.flatMap(([child, parent]) => (parent === pid && child ? [child] : []))
}
