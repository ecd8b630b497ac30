import { execFile } from 'node:child_process'
import { cp, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { KEY } from '../../support/service.ts'
import { useRefundRig } from '../../support/use-started.ts'
import { readSnippets } from './read-snippets.ts'

const ROOT = fileURLToPath(new URL('../../..', import.meta.url))
const CLIENT = join(ROOT, 'client')
const TSC = join(ROOT, 'node_modules/typescript/bin/tsc')
const run = promisify(execFile)
/** A compiler run and npm on a busy machine (ms). */
const BUILT_WITHIN_MS = 120_000

const Packed = z.tuple([
  z.object({ filename: z.string(), files: z.array(z.object({ path: z.string() })) }),
])

/** Reads a payment with the installed package: compiled first, then run. */
const PROGRAM = `
import { type Client, createClient, NotFoundError, type Payment } from '@ipn-processor/client'

const [baseUrl = '', apiKey = '', paymentId = ''] = process.argv.slice(2)
const ipn: Client = createClient({ baseUrl, apiKey })
const { status, amount }: Payment = await ipn.payments.get(paymentId)
const error = await ipn.payments.get('none').catch((error: unknown) => error)
console.log(status, amount, error instanceof NotFoundError)
`

/** Compiler options stricter than most, without the types of any runtime. */
const STRICT = {
  target: 'es2022',
  lib: ['es2022', 'dom', 'dom.asynciterable'],
  types: [],
  strict: true,
  exactOptionalPropertyTypes: true,
  noUncheckedIndexedAccess: true,
  verbatimModuleSyntax: true,
  isolatedModules: true,
  // For the client's own sources.
  rewriteRelativeImportExtensions: true,
  skipLibCheck: false,
}

let scratch: string
let built: string
beforeAll(async () => {
  scratch = await mkdtemp(join(tmpdir(), 'client-package-'))
  built = join(scratch, 'client')
  await cp(CLIENT, built, { recursive: true, filter: (path) => !path.endsWith('/dist') })
  const args = [TSC, '-p', CLIENT, '--outDir', join(built, 'dist')]
  await run(process.execPath, args).catch(({ stdout }) => expect.fail(stdout))
}, BUILT_WITHIN_MS)
afterAll(() => rm(scratch, { recursive: true, force: true }))

/** Packs a folder as `npm publish` would; returns the archive and the paths in it. */
async function pack(folder: string): Promise<{ archive: string; paths: string[] }> {
  const args = ['pack', '--json', '--pack-destination', scratch]
  const { stdout } = await run('npm', args, { cwd: folder })
  const [{ filename, files }] = Packed.parse(JSON.parse(stdout))
  return { archive: join(scratch, filename), paths: files.map(({ path }) => path).sort() }
}

describe('the package of the client', () => {
  it('has the code, its types and maps, a readme and the licence, and nothing else', async () => {
    const { paths } = await pack(built)
    const sources = await readdir(join(CLIENT, 'src'))
    const code = sources.map((file) => `dist/${file.replace(/\.ts$/, '')}`)
    expect(code).toContain('dist/index')
    const expected = code.flatMap((name) => [`${name}.js`, `${name}.js.map`, `${name}.d.ts`])
    expect(paths).toEqual([...expected, 'LICENSE', 'README.md', 'package.json'].sort())
  })

  it('has the version of the service, depends on nothing, and is published with its provenance only', async () => {
    const read = async (folder: string) =>
      z
        .looseObject({ version: z.string(), license: z.string(), engines: z.unknown() })
        .parse(JSON.parse(await readFile(join(folder, 'package.json'), 'utf8')))
    const { version, license, engines } = await read(ROOT)
    const own = await read(CLIENT)
    expect(own).toMatchObject({ version, license, engines })
    expect(own).toMatchObject({ publishConfig: { access: 'public', provenance: true } })
    expect(Object.keys(own).filter((name) => /dependencies|scripts/i.test(name))).toEqual([])
  })

  it('has maps that contain their sources, which it does not have as files', async () => {
    const map: unknown = JSON.parse(await readFile(join(built, 'dist/index.js.map'), 'utf8'))
    const source = await readFile(join(CLIENT, 'src/index.ts'), 'utf8')
    expect(map).toMatchObject({ sourcesContent: [source] })
  })
})

describe('in an empty TypeScript project', () => {
  const rig = useRefundRig({})
  let project: string
  beforeAll(async () => {
    project = join(scratch, 'shop')
    await mkdir(project)
    await writeFile(join(project, 'package.json'), JSON.stringify({ type: 'module' }))
    const { archive } = await pack(built)
    await run('npm', ['install', '--offline', '--no-audit', '--no-fund', archive], { cwd: project })
    await writeFile(join(project, 'shop.ts'), PROGRAM)
    await writeFile(join(project, 'process.d.ts'), 'declare const process: { argv: string[] }')
    const readme = await readFile(
      join(project, 'node_modules/@ipn-processor/client/README.md'),
      'utf8',
    )
    const [, snippet = ''] = /```ts\n(.*?)```/s.exec(readme) ?? []
    await writeFile(join(project, 'readme.ts'), snippet)
    const documented = await readSnippets('integrate.md', 'The typed client')
    expect(documented.length).toBeGreaterThanOrEqual(3)
    for (const [nth, code] of documented.entries()) {
      await writeFile(join(project, `docs-${nth}.ts`), code)
    }
    await cp(join(CLIENT, 'src'), join(project, 'source'), { recursive: true })
  }, BUILT_WITHIN_MS)

  it('no other package comes along', async () => {
    const folders = await readdir(join(project, 'node_modules'))
    expect(folders.filter((name) => !name.startsWith('.'))).toEqual(['@ipn-processor'])
    expect(await readdir(join(project, 'node_modules/@ipn-processor'))).toEqual(['client'])
    expect(await readdir(join(project, 'node_modules/@ipn-processor/client'))).not.toContain(
      'node_modules',
    )
  })

  it.each([
    { module: 'esnext', moduleResolution: 'bundler', noEmit: true },
    { module: 'nodenext', moduleResolution: 'nodenext' },
  ])(
    'programs, those of the documentation, and the sources compile with moduleResolution $moduleResolution',
    {
      timeout: BUILT_WITHIN_MS,
    },
    async (resolution) => {
      const compilerOptions = { ...STRICT, ...resolution }
      await writeFile(join(project, 'tsconfig.json'), JSON.stringify({ compilerOptions }))
      const compiling = run(process.execPath, [TSC, '-p', project], { cwd: project })
      await compiling.catch(({ stdout }) => expect.fail(stdout))
    },
  )

  it('the compiled program reads a payment from the running service', async () => {
    const { id } = await rig.pay({ amount: '150000' })
    const args = [join(project, 'shop.js'), rig.service.url, KEY, id]
    const { stdout } = await run(process.execPath, args)
    expect(stdout).toBe('SUCCESS 150000 true\n')
  })
})
