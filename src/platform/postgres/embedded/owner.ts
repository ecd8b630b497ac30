import { readdirSync, readlinkSync, rmSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { EmbeddedPostgresError } from './error.ts'
import { isSameProcess, nameProcess } from './processes.ts'

export type Ownership = { release(): void }

const CLAIM = 'postgres.owner-'
const RELEASED = 'released'

/**
 * Makes this process the only one that runs a database in the folder, until `release` or until the
 * process dies. Claims are numbered and the highest counts. Each is a symbolic link whose target names the
 * process: its creation is atomic, and only one process can succeed.
 * @throws EmbeddedPostgresError at once when a running process, this one included, owns the folder
 */
export function takeOwnership(folder: string): Ownership {
  for (;;) {
    const last = findLastClaim(folder)
    const owner = last > 0 ? readClaim(folder, last) : RELEASED
    if (owner === undefined) continue
    if (owner !== RELEASED && isSameProcess(owner)) throw createInUseError(folder, owner)
    const own = last + 1
    if (!addClaim(folder, own, nameProcess(process.pid))) continue
    // A process that read the list long ago can reuse a number that was cleared since. A higher claim
    // exists before any lower one is cleared, so a second read detects this.
    if (findLastClaim(folder) !== own) {
      removeClaim(folder, own)
      continue
    }
    clearClaimsBelow(folder, own)
    return { release: () => release(folder, own) }
  }
}

// Numbering never restarts (see above), so a higher claim that names no process releases this one.
function release(folder: string, own: number): void {
  if (addClaim(folder, own + 1, RELEASED)) removeClaim(folder, own)
}

function createInUseError(folder: string, owner: string): EmbeddedPostgresError {
  const pid = Number.parseInt(owner, 10)
  return new EmbeddedPostgresError(
    `the database in ${folder} is in use by process ${pid}: stop that process, set another DATA_DIR, or set DATABASE_URL`,
  )
}

function listClaims(folder: string): number[] {
  return readdirSync(folder)
    .filter((name) => name.startsWith(CLAIM))
    .map((name) => Number(name.slice(CLAIM.length)))
    .filter(Number.isSafeInteger)
}

function findLastClaim(folder: string): number {
  return Math.max(0, ...listClaims(folder))
}

function readClaim(folder: string, number: number): string | undefined {
  try {
    return readlinkSync(join(folder, CLAIM + number))
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return undefined
    throw error
  }
}

function addClaim(folder: string, number: number, owner: string): boolean {
  try {
    symlinkSync(owner, join(folder, CLAIM + number))
    return true
  } catch (error) {
    if (hasCode(error, 'EEXIST')) return false
    throw error
  }
}

function removeClaim(folder: string, number: number): void {
  rmSync(join(folder, CLAIM + number), { force: true })
}

function clearClaimsBelow(folder: string, own: number): void {
  for (const number of listClaims(folder)) if (number < own) removeClaim(folder, number)
}

function hasCode(error: unknown, code: string): boolean {
  return error instanceof Error && 'code' in error && error.code === code
}
