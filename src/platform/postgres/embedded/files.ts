import { createHash } from 'node:crypto'
import { chmodSync, existsSync, mkdirSync, realpathSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { findPackagePrograms, prepareBinaries, readPackageMajor } from './binaries.ts'
import { EmbeddedPostgresError } from './error.ts'
import { requireSameMajor } from './require-same-major.ts'
import { canReach, findServerUser, type ServerUser } from './user.ts'

/** The folders of a database, and the user that runs its server. */
export type Installation = {
  /** Holds the cluster and everything that belongs to it. */
  home: string
  cluster: string
  user: ServerUser
  /** Holds `postgres` and `initdb`. */
  bin: string
}

/** Where root keeps files that its server's user must reach, since homes and checkouts may be closed. */
const SHARED_FOLDER = '/var/lib/ipn-processor'

/**
 * Finds the folders of the database of `dataDir` and the programs that run it, and prepares both. For
 * root, the server runs as the owner of the cluster (for a new one `postgres`, else `nobody`), and files
 * that this user cannot reach are kept under /var/lib/ipn-processor, which is logged.
 * @throws EmbeddedPostgresError, before anything in `dataDir` is changed if the database is of another major version
 */
export function prepareInstallation(dataDir: string, log: (line: string) => void): Installation {
  makeFolder(dataDir)
  // The canonical path: every spelling of it has to lead to the same database.
  const requested = realpathSync(dataDir)
  const isRoot = process.getuid?.() === 0
  const { home, user } = isRoot ? chooseHomeAsRoot(requested) : chooseHomeAsUser(requested)
  const cluster = join(home, 'postgres')
  const findBin = () =>
    isRoot ? join(prepareBinaries(SHARED_FOLDER, user, log), 'bin') : findPackagePrograms()
  requireSameMajor(cluster, readPackageMajor(), findBin)
  if (home !== requested) {
    log(`the database is kept in ${home}, because its server's user cannot reach ${requested}`)
  }
  const bin = join(prepareBinaries(isRoot ? SHARED_FOLDER : home, user, log), 'bin')
  return { home, cluster, user, bin }
}

/** Creates a folder and those above it. Node's recursive `mkdir` never ends where ENOENT is the refusal, as below /proc. */
export function makeFolder(folder: string): void {
  if (existsSync(folder)) return
  makeFolder(dirname(folder))
  try {
    mkdirSync(folder)
  } catch (error) {
    // Another start may have made it.
    if (!existsSync(folder)) throw error
  }
}

/** Finds the cluster of `dataDir`, if it was ever created. */
export function findCluster(dataDir: string): string | undefined {
  if (!existsSync(dataDir)) return undefined
  const requested = realpathSync(dataDir)
  const homes = process.getuid?.() === 0 ? [requested, nameSharedHome(requested)] : [requested]
  return homes.map((home) => join(home, 'postgres')).find((folder) => existsSync(folder))
}

function nameSharedHome(requested: string): string {
  return join(SHARED_FOLDER, createHash('sha256').update(requested).digest('hex').slice(0, 16))
}

function chooseHomeAsUser(requested: string): { home: string; user: ServerUser } {
  const cluster = join(requested, 'postgres')
  if (existsSync(cluster) && statSync(cluster).uid !== process.getuid?.()) {
    throw new EmbeddedPostgresError(
      `the database in ${cluster} belongs to another user (${statSync(cluster).uid}): start as that user or as root, set another DATA_DIR, or set DATABASE_URL`,
    )
  }
  return { home: requested, user: {} }
}

function chooseHomeAsRoot(requested: string): { home: string; user: ServerUser } {
  const shared = nameSharedHome(requested)
  makeShared(SHARED_FOLDER)
  const home = [requested, shared].find((folder) => existsSync(join(folder, 'postgres')))
  if (home === undefined) {
    const user = findServerUser()
    return { home: canReach(requested, user) ? requested : makeShared(shared), user }
  }
  const { uid, gid } = statSync(join(home, 'postgres'))
  const user = uid === 0 ? findServerUser() : { uid, gid }
  if (canReach(home, user)) return { home, user }
  throw new EmbeddedPostgresError(
    `the database in ${home} cannot be reached by its server's user (${user.uid}): give that user access to the folders above it (chmod o+x), or move ${home}/postgres to ${shared}/postgres`,
  )
}

/** Creates a folder that every user can reach, whatever the umask. */
function makeShared(folder: string): string {
  mkdirSync(folder, { recursive: true })
  chmodSync(folder, 0o755)
  return folder
}
