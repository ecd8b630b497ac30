import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  chmod,
  cp,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  rm,
  symlink,
  writeFile,
} from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest'
import { z } from 'zod'
import { settingsFor } from '../../support/process.ts'
import { useTestDatabase } from '../../support/use-started.ts'
import { waitUntil } from '../../support/wait-until.ts'
import { readSnippets } from './read-snippets.ts'

const ROOT = fileURLToPath(new URL('../../..', import.meta.url))
const TSC = join(ROOT, 'node_modules', 'typescript', 'bin', 'tsc')
const run = promisify(execFile)
/** A compiler run on a busy machine (ms). */
const COMPILED_WITHIN_MS = 120_000
const node = (...args: string[]) => run(process.execPath, args, { cwd: folder })

const Lock = z.object({
  packages: z.record(
    z.string(),
    z.object({
      dev: z.boolean().optional(),
      optional: z.boolean().optional(),
      devOptional: z.boolean().optional(),
    }),
  ),
})

const Packed = z.tuple([z.object({ files: z.array(z.object({ path: z.string() })) })])

const Bin = z.object({ bin: z.object({ cli: z.string() }) })

const database = useTestDatabase()
let folder: string
let installed: string
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'consumer-'))
  installed = join(folder, 'node_modules', 'ipn-processor')
  const project = join(ROOT, 'tsconfig.build.json')
  await node(TSC, '-p', project, '--outDir', join(installed, 'dist'))
  await cp(join(ROOT, 'package.json'), join(installed, 'package.json'))
  await writeFile(join(folder, 'package.json'), JSON.stringify({ type: 'module' }))
}, COMPILED_WITHIN_MS)
afterAll(() => rm(folder, { recursive: true, force: true }))

const SANDBOX = `
import { createSandbox } from 'ipn-processor/sandbox'
const sandbox = await createSandbox({ refundMs: 10 })
const { paymentId } = await sandbox.makePayment({ amount: '150000', paymentId: '4711' })
sandbox.addFault({ command: 'QUERY_PT', kind: 'reset', times: 1 })
await sandbox.stop()
console.log(paymentId)
`

/** Links the packages that `npm ci --omit=dev --omit=optional` installs. */
async function linkNeeded(folder: string): Promise<void> {
  const { packages } = Lock.parse(
    JSON.parse(await readFile(join(ROOT, 'package-lock.json'), 'utf8')),
  )
  const needed = Object.entries(packages).filter(
    ([path, { dev, optional, devOptional }]) =>
      /^node_modules\/(@[^/]+\/)?[^/]+$/.test(path) && !dev && !optional && !devOptional,
  )
  for (const [path] of needed) {
    await mkdir(dirname(join(folder, path)), { recursive: true })
    await symlink(join(ROOT, path), join(folder, path))
  }
}

it('is packed as compiled code and migrations, with nothing else of the repository', async () => {
  const args = ['pack', '--dry-run', '--json']
  const { stdout } = await run('npm', args, { cwd: ROOT, maxBuffer: 2 ** 24 })
  const [{ files }] = Packed.parse(JSON.parse(stdout))
  const paths = files.map(({ path }) => path).filter((path) => !path.startsWith('dist/'))
  const migrations = await readdir(join(ROOT, 'migrations'), {
    recursive: true,
    withFileTypes: true,
  })
  const expected = migrations
    .filter((entry) => entry.isFile())
    .map((entry) => relative(ROOT, join(entry.parentPath, entry.name)))
  expect(paths.sort()).toEqual(['LICENSE', 'README.md', ...expected, 'package.json'].sort())
  const compiled = await readdir(join(installed, 'dist'), { recursive: true, withFileTypes: true })
  const names = compiled.filter((entry) => entry.isFile()).map(({ name }) => name)
  expect(names.length).toBeGreaterThan(300)
  expect(names.filter((name) => !/\.(js|js\.map|d\.ts)$/.test(name))).toEqual([])
})

it('runs compiled, with neither tsx nor any other optional package', async () => {
  const production = join(folder, 'production')
  await mkdir(production)
  await cp(join(installed, 'dist'), join(production, 'dist'), { recursive: true })
  for (const name of ['package.json', 'migrations']) {
    await cp(join(ROOT, name), join(production, name), { recursive: true })
  }
  await linkNeeded(production)
  const child = spawn(process.execPath, ['dist/main.js'], {
    cwd: production,
    env: { PATH: process.env.PATH, ...settingsFor(database.url, 'http://127.0.0.1:9') },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const ended = once(child, 'exit')
  onTestFinished(() => void child.kill('SIGKILL'))
  let output = ''
  child.stdout.on('data', (text) => {
    output += text
  })
  const isReady = () => output.includes('"msg":"ready"') || child.exitCode !== null
  await waitUntil(isReady, { what: 'the start' })
  const url = /"url":"([^"]+)"/.exec(output)?.[1] ?? ''
  expect((await fetch(`${url}/readyz`)).status).toBe(200)
  child.kill('SIGTERM')
  expect(await ended).toEqual([0, null])
  // As npm links it where the package is installed.
  const { bin } = Bin.parse(JSON.parse(await readFile(join(ROOT, 'package.json'), 'utf8')))
  await chmod(join(production, bin.cli), 0o755)
  await symlink(bin.cli, join(production, 'cli'))
  const { stdout } = await run(join(production, 'cli'), ['show', '--help'])
  expect(stdout).toContain('Usage: cli show [options] <id>')
})

it('provides the sandbox as JavaScript with types, and the documented webhook receiver compiles', {
  timeout: COMPILED_WITHIN_MS,
}, async () => {
  await symlink(join(ROOT, 'node_modules'), join(installed, 'node_modules'))
  await writeFile(join(folder, 'sandbox.ts'), SANDBOX)
  const [receiver = ''] = await readSnippets('integrate.md', 'Webhooks')
  // Next to its own packages.
  const beside = join(installed, 'receiver.ts')
  await writeFile(beside, receiver)
  const [ownTest = ''] = await readSnippets('sandbox.md', 'In your own tests')
  await writeFile(join(folder, 'own-test.ts'), ownTest)
  await writeFile(join(folder, 'sandbox.js'), SANDBOX)
  expect(await node('sandbox.js')).toMatchObject({ stdout: '4711\n' })
  const strict = ['--noEmit', '--strict', '--skipLibCheck', '--module', 'nodenext']
  const types = ['--typeRoots', join(ROOT, 'node_modules', '@types'), '--types', 'node']
  await node(TSC, '--ignoreConfig', ...strict, ...types, 'sandbox.ts', 'own-test.ts', beside)
})
