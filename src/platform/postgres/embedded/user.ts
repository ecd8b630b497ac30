import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { EmbeddedPostgresError } from './error.ts'

/** The user that runs the server; empty for the user of this process. */
export type ServerUser = { uid?: number; gid?: number }

/** Returns the spawn options of every database program: nothing of our environment reaches it. */
export function buildSpawnOptions(user: ServerUser) {
  return { ...user, cwd: '/', env: { PATH: '/usr/bin:/bin', LC_ALL: 'C', TZ: 'UTC' } }
}

/**
 * Finds the user that runs the server when this process is root, which Postgres refuses: `postgres`, else
 * `nobody`.
 * @throws EmbeddedPostgresError when neither exists
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

/** Tries to enter the folder as that user: mode bits alone do not show access lists and mount options. */
export function canReach(folder: string, user: ServerUser): boolean {
  const args = ['-c', 'cd -- "$1"', 'sh', folder]
  return spawnSync('/bin/sh', args, buildSpawnOptions(user)).status === 0
}
