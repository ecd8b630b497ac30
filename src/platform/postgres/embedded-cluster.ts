import { spawnSync } from 'node:child_process'
import { createHash, randomBytes } from 'node:crypto'
import * as fs from 'node:fs'
import { dirname, join } from 'node:path'
import {
  buildSpawnOptions,
  EmbeddedPostgresError,
  runGuarded,
  type ServerUser,
} from './embedded-binaries.ts'

/** For files of a server started by root, whose user may not be able to enter home directories and checkouts. */
export const SHARED_FOLDER = '/var/lib/ipn-processor'
export const WHAT_ELSE = 'set another DATA_DIR, or set DATABASE_URL'

const PASSWORD_FILE = 'ipn-password'
const UNFINISHED = 'postgres.init-'

/** Creates a folder and its parents. Node's recursive `mkdir` never ends if ENOENT is the refusal, as below /proc. */
export function makeFolder(folder: string): void {
  if (fs.existsSync(folder)) return
  makeFolder(dirname(folder))
  try {
    fs.mkdirSync(folder)
  } catch (error) {
    // Another process may have created it.
    if (!fs.existsSync(folder)) throw error
  }
}

/** Finds the cluster of `dataDir`, if it was ever created. */
export function findCluster(dataDir: string): string | undefined {
  if (!fs.existsSync(dataDir)) return undefined
  const requested = fs.realpathSync(dataDir)
  const homes = process.getuid?.() === 0 ? [requested, nameSharedHome(requested)] : [requested]
  return homes.map((home) => join(home, 'postgres')).find((folder) => fs.existsSync(folder))
}

const nameSharedHome = (requested: string) =>
  join(SHARED_FOLDER, createHash('sha256').update(requested).digest('hex').slice(0, 16))

type Home = { home: string; user: ServerUser }

/**
 * Chooses the folder of the cluster and the user of the server. Postgres refuses to run as root: then the owner of the
 * files runs it (of new ones `postgres`, or else `nobody`), and what that user cannot reach is in the shared folder.
 * @throws EmbeddedPostgresError
 */
export function chooseHome(requested: string, log: (line: string) => void): Home {
  const cluster = findCluster(requested)
  const owner = cluster === undefined ? undefined : fs.statSync(cluster)
  const self = process.getuid?.()
  if (self !== 0) {
    if (owner === undefined || owner.uid === self) return { home: requested, user: {} }
    throw new EmbeddedPostgresError(
      `the database in ${cluster} belongs to another user (${owner.uid}): start as that user or as root, ${WHAT_ELSE}`,
    )
  }
  makeShared(SHARED_FOLDER)
  const user = owner && owner.uid !== 0 ? { uid: owner.uid, gid: owner.gid } : findServerUser()
  const home = cluster === undefined ? requested : dirname(cluster)
  if (canReach(home, user)) return { home, user }
  const shared = nameSharedHome(requested)
  if (cluster !== undefined) {
    throw new EmbeddedPostgresError(
      `the database in ${home} cannot be reached by its server's user (${user.uid}): give that user access to the folders above it (chmod o+x), or move ${cluster} to ${shared}/postgres`,
    )
  }
  log(`the database is kept in ${shared}, because its server's user cannot reach ${requested}`)
  return { home: makeShared(shared), user }
}

/** Creates a folder that every user can enter, whatever the umask. */
function makeShared(folder: string): string {
  fs.mkdirSync(folder, { recursive: true })
  fs.chmodSync(folder, 0o755)
  return folder
}

/** Finds the user for the server when this process is root. @throws EmbeddedPostgresError */
export function findServerUser(): { uid: number; gid: number } {
  const users = fs.readFileSync('/etc/passwd', 'utf8')
  for (const name of ['postgres', 'nobody']) {
    const [, uid, gid] = new RegExp(`^${name}:[^:]*:(\\d+):(\\d+):`, 'm').exec(users) ?? []
    if (uid !== undefined) return { uid: Number(uid), gid: Number(gid) }
  }
  throw new EmbeddedPostgresError(
    'Postgres does not run as root, and there is no user postgres or nobody: start as another user, or set DATABASE_URL',
  )
}

/** Tries to enter the folder as the user, because mode bits do not show access lists and mount options. */
function canReach(folder: string, user: ServerUser): boolean {
  const args = ['-c', 'cd -- "$1"', 'sh', folder]
  return spawnSync('/bin/sh', args, buildSpawnOptions(user)).status === 0
}

type NewCluster = Home & { bin: string; isDurable: boolean }

/** Creates the cluster. It appears complete, by a rename, or not at all. @throws EmbeddedPostgresError */
export async function createCluster({ home, user, bin, isDurable }: NewCluster): Promise<void> {
  const folder = fs.mkdtempSync(join(home, `${UNFINISHED}${process.pid}-`))
  try {
    const created = join(folder, 'cluster')
    const password = join(folder, PASSWORD_FILE)
    const text = `${randomBytes(24).toString('base64url')}\n`
    fs.writeFileSync(password, text, { mode: 0o600, flush: true })
    if (user.uid !== undefined && user.gid !== undefined) {
      for (const path of [folder, password]) fs.chownSync(path, user.uid, user.gid)
    }
    const command = [join(bin, 'initdb'), '-D', created, '-U', 'postgres']
    command.push('--auth=scram-sha-256', `--pwfile=${password}`, '--encoding=UTF8', '--locale=C')
    command.push('--data-checksums', '--no-instructions', ...(isDurable ? [] : ['--no-sync']))
    const { status, output } = await runGuarded(command, user).ended
    if (status !== 0) {
      throw new EmbeddedPostgresError(
        `the embedded Postgres could not be initialised in ${home} (${output}): fix that, ${WHAT_ELSE}`,
      )
    }
    fs.renameSync(password, join(created, PASSWORD_FILE))
    if (isDurable) sync(created)
    try {
      fs.renameSync(created, join(home, 'postgres'))
    } catch (error) {
      // Another process was faster, and both use its cluster.
      if (!fs.existsSync(join(home, 'postgres/PG_VERSION'))) throw error
    }
    if (isDurable) sync(home)
  } finally {
    fs.rmSync(folder, { recursive: true, force: true, maxRetries: 3 })
  }
}

/** Removes what killed processes left. If an `initdb` is still cleaning up, a later start removes the rest. */
export function removeAbandoned(home: string): void {
  for (const name of fs.readdirSync(home)) {
    if (!name.startsWith(UNFINISHED) || isAlive(Number(name.split('-')[1]))) continue
    try {
      fs.rmSync(join(home, name), { recursive: true, force: true, maxRetries: 3 })
    } catch {}
  }
}

function sync(folder: string): void {
  const handle = fs.openSync(folder, 'r')
  fs.fsyncSync(handle)
  fs.closeSync(handle)
}

export function readPassword(cluster: string): string {
  return fs.readFileSync(join(cluster, PASSWORD_FILE), 'utf8').trim()
}

export function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}
