import { createHash } from 'node:crypto'
import { chmodSync, existsSync, mkdirSync, realpathSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { prepareBinaries } from './binaries.ts'
import { EmbeddedPostgresError } from './error.ts'
import { canReach, findServerUser, type ServerUser } from './user.ts'

export type Place = {
  /** Holds the cluster and all that belongs to it. */
  home: string
  cluster: string
  user: ServerUser
  /** Holds `postgres` and `initdb`. */
  bin: string
}

/** Where root keeps what its server's user must reach, since homes and checkouts may be closed. */
const SHARED = '/var/lib/ipn-processor'

/**
 * Finds where the database of `dataDir` lives and what runs it, and makes both ready. For root, the
 * server runs as the user the cluster belongs to (a new one: `postgres`, else `nobody`), and files
 * that user cannot reach are kept under /var/lib/ipn-processor, which `log` is told.
 * @throws EmbeddedPostgresError
 */
export function preparePlace(dataDir: string, log: (line: string) => void): Place {
  mkdirSync(dataDir, { recursive: true })
  // One folder, one name: whichever way it was spelled, the same database is found.
  const wanted = realpathSync(dataDir)
  const isRoot = process.getuid?.() === 0
  const { home, user } = isRoot ? choosePlaceAsRoot(wanted) : choosePlaceAsUser(wanted)
  if (home !== wanted) {
    log(`the database is kept in ${home}, since its server's user cannot reach ${wanted}`)
  }
  const bin = join(prepareBinaries(isRoot ? SHARED : home, user, log), 'bin')
  return { home, cluster: join(home, 'postgres'), user, bin }
}

/** The cluster of `dataDir`, if it was ever made. */
export function findCluster(dataDir: string): string | undefined {
  if (!existsSync(dataDir)) return undefined
  const wanted = realpathSync(dataDir)
  const homes = process.getuid?.() === 0 ? [wanted, nameMovedHome(wanted)] : [wanted]
  return homes.map((home) => join(home, 'postgres')).find((folder) => existsSync(folder))
}

function nameMovedHome(wanted: string): string {
  return join(SHARED, createHash('sha256').update(wanted).digest('hex').slice(0, 16))
}

function choosePlaceAsUser(wanted: string): { home: string; user: ServerUser } {
  const cluster = join(wanted, 'postgres')
  if (existsSync(cluster) && statSync(cluster).uid !== process.getuid?.()) {
    throw new EmbeddedPostgresError(
      `the database in ${cluster} belongs to another user (${statSync(cluster).uid}): start as that user or as root, set another DATA_DIR, or set DATABASE_URL`,
    )
  }
  return { home: wanted, user: {} }
}

function choosePlaceAsRoot(wanted: string): { home: string; user: ServerUser } {
  const moved = nameMovedHome(wanted)
  makeShared(SHARED)
  const home = [wanted, moved].find((folder) => existsSync(join(folder, 'postgres')))
  if (home === undefined) {
    const user = findServerUser()
    return { home: canReach(wanted, user) ? wanted : makeShared(moved), user }
  }
  const { uid, gid } = statSync(join(home, 'postgres'))
  const user = uid === 0 ? findServerUser() : { uid, gid }
  if (canReach(home, user)) return { home, user }
  throw new EmbeddedPostgresError(
    `the database in ${home} cannot be reached by its server's user (${user.uid}): open the folders above it to that user (chmod o+x), or move ${home}/postgres to ${moved}/postgres`,
  )
}

/** A folder that everybody can reach, whatever the umask. */
function makeShared(folder: string): string {
  mkdirSync(folder, { recursive: true })
  chmodSync(folder, 0o755)
  return folder
}
