import { execFile } from 'node:child_process'
import { cp, mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, it } from 'vitest'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const TSC = join(ROOT, 'node_modules', 'typescript', 'bin', 'tsc')
const run = promisify(execFile)
/** A compiler run on a busy machine (ms). */
const COMPILED_WITHIN_MS = 120_000
const node = (...args: string[]) => run(process.execPath, args, { cwd: folder })

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

/** A consumer's compiler options, stricter than most, without the types of any runtime. */
const STRICT = {
  compilerOptions: {
    noEmit: true,
    module: 'nodenext',
    target: 'es2022',
    lib: ['es2022', 'dom', 'dom.asynciterable'],
    types: [],
    strict: true,
    exactOptionalPropertyTypes: true,
    noUncheckedIndexedAccess: true,
    verbatimModuleSyntax: true,
    isolatedModules: true,
    allowImportingTsExtensions: true,
    skipLibCheck: false,
  },
  include: ['strict'],
}

const CLIENT = `
import { ConnectionError, createClient } from 'ipn-processor/client'
const client = createClient({ baseUrl: 'http://127.0.0.1:9', apiKey: 'key', retries: 0 })
const error = await client.payments.get('1').catch((error) => error)
console.log(error instanceof ConnectionError, error.message)
`

const SANDBOX = `
import { createSandbox } from 'ipn-processor/sandbox'
const sandbox = await createSandbox({ refundMs: 10 })
const { paymentId } = await sandbox.makePayment({ amount: '150000', paymentId: '4711' })
sandbox.addFault({ command: 'QUERY_PT', kind: 'reset', times: 1 })
await sandbox.stop()
console.log(paymentId)
`

/** Returns the TypeScript snippets of a section of the documentation. */
async function readSnippets(page: string, title: string): Promise<string[]> {
  const text = await readFile(join(ROOT, 'docs', page), 'utf8')
  const [, section = ''] = text.split(new RegExp(`\n##+ ${title}\n`))
  const [own = ''] = section.split(/\n##+ /)
  return [...own.matchAll(/```ts\n(.*?)```/gs)].map(([, code = '']) => code)
}

it('provides the client as JavaScript without dependencies', async () => {
  await writeFile(join(folder, 'client.js'), CLIENT)
  expect(await node('client.js')).toMatchObject({
    stdout: 'true GET /v1/payments/1: no response (bad port)\n',
  })
})

it('provides types for strict projects of any runtime, and the snippets of the documentation compile', {
  timeout: COMPILED_WITHIN_MS,
}, async () => {
  const strict = join(folder, 'strict')
  await mkdir(strict)
  await writeFile(join(folder, 'tsconfig.json'), JSON.stringify(STRICT))
  await writeFile(join(strict, 'client.ts'), CLIENT)
  await cp(join(ROOT, 'src', 'client'), join(strict, 'source'), { recursive: true })
  const snippets = await readSnippets('webhooks.md', 'The typed client')
  expect(snippets.length).toBeGreaterThanOrEqual(3)
  for (const [nth, code] of snippets.entries()) {
    await writeFile(join(strict, `docs-${nth}.ts`), code)
  }
  await node(TSC, '-p', join(folder, 'tsconfig.json')).catch(({ stdout }) => expect.fail(stdout))
})

it('provides the sandbox as JavaScript with types, and the documented webhook receiver compiles', {
  timeout: COMPILED_WITHIN_MS,
}, async () => {
  await symlink(join(ROOT, 'node_modules'), join(installed, 'node_modules'))
  await writeFile(join(folder, 'sandbox.ts'), SANDBOX)
  const [receiver = ''] = await readSnippets('webhooks.md', 'Webhooks')
  // Next to its own packages.
  const beside = join(installed, 'receiver.ts')
  await writeFile(beside, receiver)
  const [ownTest = ''] = await readSnippets('operations.md', 'In your own tests')
  await writeFile(join(folder, 'own-test.ts'), ownTest)
  await writeFile(join(folder, 'sandbox.js'), SANDBOX)
  expect(await node('sandbox.js')).toMatchObject({ stdout: '4711\n' })
  const strict = ['--noEmit', '--strict', '--skipLibCheck', '--module', 'nodenext']
  const types = ['--typeRoots', join(ROOT, 'node_modules', '@types'), '--types', 'node']
  await node(TSC, '--ignoreConfig', ...strict, ...types, 'sandbox.ts', 'own-test.ts', beside)
})
