import { execFile } from 'node:child_process'
import { rm, symlink } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const BUILT = join(ROOT, 'bench-results/build')

/** Compiles service, baselines and load as a production image does: what runs sources makes each closure dearer. */
export async function build(): Promise<void> {
  await rm(BUILT, { recursive: true, force: true })
  const options = ['--noEmit', 'false', '--allowJs', '--rootDir', ROOT, '--outDir', BUILT]
  await promisify(execFile)(join(ROOT, 'node_modules/.bin/tsc'), ['-p', ROOT, ...options])
  await symlink(join(ROOT, 'migrations'), join(BUILT, 'migrations'))
}

/** Where a source file's compiled form lies. */
export function findBuilt(source: string): string {
  return join(BUILT, source.replace(/\.ts$/, '.js'))
}
