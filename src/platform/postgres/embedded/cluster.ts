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
import type { Installation } from './files.ts'
import type { ServerUser } from './user.ts'
import { runGuarded } from './watchdog.ts'

const PASSWORD_FILE = 'ipn-password'
const UNFINISHED = 'postgres.init-'

/**
 * Creates the cluster if there is none. It appears complete, by one rename, or not at all; the caller must
 * own the home folder.
 * @param durable false skips the sync, for a cluster that may be lost
 * @throws EmbeddedPostgresError with the output of initdb
 */
export async function initialiseCluster(
  installation: Installation,
  durable: boolean,
): Promise<void> {
  const { home, cluster, user } = installation
  if (existsSync(join(cluster, 'PG_VERSION'))) return
  removeUnfinished(home)
  const folder = mkdtempSync(join(home, UNFINISHED))
  try {
    changeOwner(folder, user)
    const created = await runInitdb(installation, folder, durable)
    if (durable) sync(created)
    renameSync(created, cluster)
    if (durable) sync(home)
  } finally {
    removeUnfinished(home)
  }
}

/** Reads the password of the role `postgres`. */
export function readPassword(cluster: string): string {
  return readFileSync(join(cluster, PASSWORD_FILE), 'utf8').trim()
}

// initdb's own sync has no measurable cost (600 to 900 ms with and without), so it stays on: the files are
// on disk before the rename.
async function runInitdb(
  { home, user, bin }: Installation,
  folder: string,
  durable: boolean,
): Promise<string> {
  const cluster = join(folder, 'cluster')
  const password = join(folder, PASSWORD_FILE)
  writeFileSync(password, `${randomBytes(24).toString('base64url')}\n`, {
    mode: 0o600,
    flush: true,
  })
  changeOwner(password, user)
  const command = [join(bin, 'initdb'), '-D', cluster, '-U', 'postgres']
  command.push('--auth=scram-sha-256', `--pwfile=${password}`, '--encoding=UTF8', '--locale=C')
  command.push('--data-checksums', '--no-instructions', ...(durable ? [] : ['--no-sync']))
  const { status, output } = await runGuarded(command, user).ended
  if (status !== 0) {
    throw new EmbeddedPostgresError(
      `the embedded Postgres could not be initialised in ${home} (${output}): fix that, set another DATA_DIR, or set DATABASE_URL`,
    )
  }
  renameSync(password, join(cluster, PASSWORD_FILE))
  return cluster
}

function changeOwner(path: string, { uid, gid }: ServerUser): void {
  if (uid !== undefined && gid !== undefined) chownSync(path, uid, gid)
}

function sync(folder: string): void {
  const handle = openSync(folder, 'r')
  fsyncSync(handle)
  closeSync(handle)
}

// The initdb of a killed process may still be cleaning up: the next start removes what is left.
function removeUnfinished(home: string): void {
  for (const name of readdirSync(home)) {
    if (!name.startsWith(UNFINISHED)) continue
    try {
      rmSync(join(home, name), { recursive: true, force: true, maxRetries: 3 })
    } catch {}
  }
}
