import { readdirSync, readlinkSync, rmSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { EmbeddedPostgresError } from './error.ts'
import { isSameProcess, nameProcess } from './processes.ts'

export type Ownership = { release(): void }

const CLAIM = 'postgres.owner-'
const RELEASED = 'released'

/**
 * Makes this process the only one that runs a database in the folder, until `release` or until the
 * process dies. Claims are numbered and the highest counts. Each is a symbolic link whose target
 * names the process: made whole or not at all, and by one process only.
 * @throws EmbeddedPostgresError at once when a living process, this one included, owns the folder
 */
export function takeOwnership(folder: string): Ownership {
  for (;;) {
    const last = findLastClaim(folder)
    const owner = last > 0 ? readClaim(folder, last) : RELEASED
    if (owner === undefined) continue
    if (owner !== RELEASED && isSameProcess(owner)) throw refuse(folder, owner)
    const mine = last + 1
    if (!addClaim(folder, mine, nameProcess(process.pid))) continue
    // A starter that read the list long ago can reuse a number that was cleared since; a higher
    // claim is there before any lower one is cleared, so looking again tells.
    if (findLastClaim(folder) !== mine) {
      removeClaim(folder, mine)
      continue
    }
    clearClaimsBelow(folder, mine)
    return { release: () => release(folder, mine) }
  }
}

// Numbers never start again (see above), so a claim is released by a higher one that names nobody.
function release(folder: string, mine: number): void {
  if (addClaim(folder, mine + 1, RELEASED)) removeClaim(folder, mine)
}

function refuse(folder: string, owner: string): EmbeddedPostgresError {
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

function clearClaimsBelow(folder: string, mine: number): void {
  for (const number of listClaims(folder)) if (number < mine) removeClaim(folder, number)
}

function hasCode(error: unknown, code: string): boolean {
  return error instanceof Error && 'code' in error && error.code === code
}
