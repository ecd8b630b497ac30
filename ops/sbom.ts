import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { z } from 'zod'

/**
 * Writes the bill of materials of a production installation to standard output, as CycloneDX: every package that
 * `npm ci --omit=dev` may install, with version, hash and licence, from the lock file alone. Those of `scope` optional are
 * left out by `--omit=optional`; with that argument the bill leaves them out, too, as the image does.
 *
 * `npm sbom --omit=dev` is not enough: it leaves out what a development package needs as well (npm 11).
 */

const ROOT = fileURLToPath(new URL('..', import.meta.url))

const Package = z.looseObject({ name: z.string() })
const Lock = z.looseObject({
  packages: z.record(
    z.string(),
    z.looseObject({
      dev: z.boolean().optional(),
      optional: z.boolean().optional(),
      devOptional: z.boolean().optional(),
    }),
  ),
})

const withOptional = !process.argv.includes('--omit=optional')
/** What the bill of materials is about has no development packages, and optional ones only with them. */
const left = {
  devDependencies: undefined,
  ...(withOptional ? {} : { optionalDependencies: undefined }),
}

const readJson = (file: string): unknown => JSON.parse(readFileSync(join(ROOT, file), 'utf8'))

const own = Package.parse(readJson('package.json'))
const lock = Lock.parse(readJson('package-lock.json'))
const packages = Object.entries(lock.packages)
  // Packages below vitest belong to it, whatever the lock file lists.
  .filter(([path, { dev }]) => !dev && !path.startsWith('node_modules/vitest/'))
  .filter(([, { optional, devOptional }]) => withOptional || !(optional || devOptional))
  .map(([path, entry]) => [
    path,
    path === '' ? { ...entry, ...left } : { ...entry, devDependencies: undefined },
  ])

const folder = mkdtempSync(join(tmpdir(), 'sbom-'))
try {
  // npm names the bill after its folder.
  const project = join(folder, own.name)
  mkdirSync(project)
  const write = (file: string, value: unknown) =>
    writeFileSync(join(project, file), JSON.stringify(value))
  write('package.json', { ...own, ...left })
  write('package-lock.json', { ...lock, packages: Object.fromEntries(packages) })
  const args = ['sbom', '--package-lock-only', '--sbom-format=cyclonedx']
  const bill = execFileSync('npm', args, { cwd: project, stdio: ['ignore', 'pipe', 'inherit'] })
  process.stdout.write(bill)
} finally {
  rmSync(folder, { recursive: true, force: true })
}
