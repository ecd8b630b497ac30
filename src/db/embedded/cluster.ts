import { randomBytes } from 'node:crypto'
import {
  chownSync,
  closeSync,
  existsSync,
  fsyncSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { EmbeddedPostgresError } from './error.ts'
import type { Place } from './files.ts'
import type { ServerUser } from './user.ts'
import { runGuarded } from './watchdog.ts'

const PASSWORD_FILE = 'ipn-password'
const UNFINISHED = 'postgres.init-'

/**
 * Makes the cluster if there is none. It appears whole, by one rename, or not at all; the caller
 * owns the place. `durable: false` leaves out the sync, for a cluster that may be lost.
 * @throws EmbeddedPostgresError with what initdb said
 */
export async function initialiseCluster(place: Place, durable: boolean): Promise<void> {
  if (existsSync(join(place.cluster, 'PG_VERSION'))) return
  removeUnfinished(place.home)
  const folder = mkdtempSync(join(place.home, UNFINISHED))
  try {
    give(folder, place.user)
    const made = await runInitdb(place, folder, durable)
    if (durable) sync(made)
    renameSync(made, place.cluster)
    if (durable) sync(place.home)
  } finally {
    removeUnfinished(place.home)
  }
}

/** The password of the role `postgres`. */
export function readPassword(cluster: string): string {
  return readFileSync(join(cluster, PASSWORD_FILE), 'utf8').trim()
}

// initdb's own sync costs nothing that can be told from noise (600 to 900 ms with and without), so
// what is renamed is on disk.
async function runInitdb(place: Place, folder: string, durable: boolean): Promise<string> {
  const cluster = join(folder, 'cluster')
  const password = join(folder, PASSWORD_FILE)
  writeFileSync(password, `${randomBytes(24).toString('base64url')}\n`, {
    mode: 0o600,
    flush: true,
  })
  give(password, place.user)
  const command = [join(place.bin, 'initdb'), '-D', cluster, '-U', 'postgres']
  command.push('--auth=scram-sha-256', `--pwfile=${password}`, '--encoding=UTF8', '--locale=C')
  command.push('--data-checksums', '--no-instructions', ...(durable ? [] : ['--no-sync']))
  const { status, output } = await runGuarded(command, place.user).ended
  if (status !== 0) {
    throw new EmbeddedPostgresError(
      `the embedded Postgres could not be initialised in ${place.home} (${output}): mend that, set another DATA_DIR, or set DATABASE_URL`,
    )
  }
  renameSync(password, join(cluster, PASSWORD_FILE))
  return cluster
}

function give(path: string, { uid, gid }: ServerUser): void {
  if (uid !== undefined && gid !== undefined) chownSync(path, uid, gid)
}

function sync(folder: string): void {
  const handle = openSync(folder, 'r')
  fsyncSync(handle)
  closeSync(handle)
}

// The initdb of a process that was killed may still be cleaning up: what is left, the next start takes.
function removeUnfinished(home: string): void {
  for (const name of readdirSync(home)) {
    if (!name.startsWith(UNFINISHED)) continue
    try {
      rmSync(join(home, name), { recursive: true, force: true, maxRetries: 3 })
    } catch {}
  }
}
