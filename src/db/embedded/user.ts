import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { EmbeddedPostgresError } from './error.ts'

/** Whose rights the server has: our own when empty. */
export type ServerUser = { uid?: number; gid?: number }

/** How every program of the database is started: nothing of our environment reaches it. */
export function describeLaunch(user: ServerUser) {
  return { ...user, cwd: '/', env: { PATH: '/usr/bin:/bin', LC_ALL: 'C', TZ: 'UTC' } }
}

/**
 * The user that runs the server for root, which Postgres refuses: `postgres`, else `nobody`.
 * @throws EmbeddedPostgresError when there is neither
 */
export function findServerUser(): { uid: number; gid: number } {
  const lines = readFileSync('/etc/passwd', 'utf8').split('\n')
  const users = lines.map((line) => line.split(':'))
  const user = ['postgres', 'nobody'].flatMap((name) => users.find(([n]) => n === name) ?? [])
  const [, , uid, gid] = user
  if (uid === undefined || gid === undefined) {
    throw new EmbeddedPostgresError(
      'Postgres does not run as root, and there is no user postgres or nobody: start as another user, or set DATABASE_URL',
    )
  }
  return { uid: Number(uid), gid: Number(gid) }
}

/** Asked of the system, as that user: mode bits alone leave out access lists and mount options. */
export function canReach(folder: string, user: ServerUser): boolean {
  const args = ['-c', 'cd -- "$1"', 'sh', folder]
  return spawnSync('/bin/sh', args, describeLaunch(user)).status === 0
}
