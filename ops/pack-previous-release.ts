import { execFileSync } from 'node:child_process'
import {
  cpSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'
import { z } from 'zod'

const ROOT = fileURLToPath(new URL('..', import.meta.url))

/** Where the rolling-upgrade drill finds the previous release. */
export const PREVIOUS_RELEASE = join(ROOT, 'test/fixtures/previous-release')

const SOURCES = ['src', 'migrations', 'package.json', 'tsconfig.json', 'tsconfig.build.json']
/** Started in demo mode only; the sandbox gateway comes with it. */
const LEFT_OUT = ['./demo.js']
/** Read at run time instead of being imported. */
const READ_AT_RUN_TIME = ['console/assets/console.js']

const Manifest = z.object({ name: z.string(), version: z.string(), license: z.string() })
const Journal = z.object({ entries: z.array(z.object({ tag: z.string() })) })

/** What `release.json` of the folder holds. */
export type PackedRelease = { version: string; commit: string }

/**
 * Compiles a commit's service, and replaces the folder by the result: `dist/` with what `dist/main.js` imports,
 * `migrations/` without snapshots, a `package.json` and a `release.json`. Below the project it runs with the packages
 * installed now, which may be newer than those the commit was released with. Takes about 20 s.
 * @param commit a tag or a commit
 * @param target the folder
 * @returns the version of the commit's `package.json`, and its full hash
 * @throws Error when there is no such commit, or it does not compile with the packages installed now; the folder then
 *   stays as it was
 */
export async function packRelease(
  commit: string,
  target: string = PREVIOUS_RELEASE,
): Promise<PackedRelease> {
  const hash = git('rev-parse', '--verify', `${commit}^{commit}`).toString().trim()
  const work = mkdtempSync(join(tmpdir(), 'ipn-release-'))
  try {
    execFileSync('tar', ['-x', '-C', work], { input: git('archive', hash, ...SOURCES) })
    symlinkSync(join(ROOT, 'node_modules'), join(work, 'node_modules'))
    compile(work)
    const { name, version, license } = Manifest.parse(readJson(join(work, 'package.json')))
    const files = [...(await listImported(join(work, 'dist'))), ...READ_AT_RUN_TIME]
    rmSync(target, { recursive: true, force: true })
    for (const file of files) copy(join('dist', file), work, target)
    for (const file of listMigrations(work)) copy(join('migrations', file), work, target)
    // The compiled code finds its version by the package's own name.
    const exports = { './package.json': './package.json' }
    const manifest = { name, version, license, private: true, type: 'module', exports }
    writeJson(join(target, 'package.json'), manifest)
    writeJson(join(target, 'release.json'), { version, commit: hash })
    return { version, commit: hash }
  } finally {
    rmSync(work, { recursive: true, force: true })
  }
}

function git(...args: string[]): Buffer {
  return execFileSync('git', args, { cwd: ROOT, maxBuffer: 256 * 1024 * 1024 })
}

function compile(work: string): void {
  const tsc = join(ROOT, 'node_modules/typescript/bin/tsc')
  const maps = ['--sourceMap', 'false', '--inlineSources', 'false']
  const plain = [...maps, '--declaration', 'false', '--removeComments', 'true']
  const args = [tsc, '-p', join(work, 'tsconfig.build.json'), '--outDir', join(work, 'dist')]
  execFileSync(process.execPath, [...args, ...plain], { cwd: work, stdio: 'inherit' })
}

/** Lists what the compiled service imports, relative to the folder. */
async function listImported(dist: string): Promise<string[]> {
  const { metafile } = await build({
    absWorkingDir: dist,
    entryPoints: ['main.js'],
    outdir: 'unwritten',
    write: false,
    metafile: true,
    bundle: true,
    format: 'esm',
    platform: 'node',
    packages: 'external',
    external: LEFT_OUT,
    logLevel: 'error',
  })
  return Object.keys(metafile.inputs).map((file) => relative('.', file))
}

function listMigrations(work: string): string[] {
  const { entries } = Journal.parse(readJson(join(work, 'migrations/meta/_journal.json')))
  return ['meta/_journal.json', ...entries.map(({ tag }) => `${tag}.sql`)]
}

function copy(file: string, from: string, to: string): void {
  mkdirSync(dirname(join(to, file)), { recursive: true })
  cpSync(join(from, file), join(to, file))
}

function readJson(file: string): unknown {
  return JSON.parse(readFileSync(file, 'utf8'))
}

function writeJson(file: string, value: unknown): void {
  writeFileSync(file, `${JSON.stringify(value, undefined, 2)}\n`)
}

/** `node --import tsx ops/pack-previous-release.ts [commit]`: by default the newest tag. */
if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const commit = process.argv[2] ?? git('describe', '--tags', '--abbrev=0').toString().trim()
  const { version, commit: hash } = await packRelease(commit)
  process.stdout.write(`${relative(ROOT, PREVIOUS_RELEASE)} holds release ${version}, ${hash}\n`)
}
