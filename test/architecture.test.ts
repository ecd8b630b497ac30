import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join, posix } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'

/**
 * Who may import whom: a folder or root file of `src` may import itself and everything in the rows
 * above its own, never a neighbour in its row. What is in no row may import nothing.
 */
const LAYERS: readonly (readonly string[])[] = [
  ['mask', 'trace', 'version'],
  [
    'backoff',
    'breaker',
    'errors',
    'group',
    'log',
    'metrics',
    'money',
    'rate',
    'seal',
    'settings',
    'slots',
    'token-source',
  ],
  ['merchants-file', 'otlp'],
  ['config', 'loop'],
  ['db', 'gateway', 'http'],
  ['retention'],
  ['access'],
  ['events'],
  ['cards', 'discrepancies', 'ipn', 'payments'],
  ['transactions'],
  ['refunds'],
  ['sync'],
  ['feed'],
  ['webhooks'],
  ['docs'],
  ['app', 'background'],
  ['telemetry'],
  ['service'],
  ['cli', 'demo'],
  ['main'],
]

/** What everything works with. They hold types only, and may be imported, as types, from everywhere. */
const SHARED_TYPES = ['context.ts', 'http/app-env.ts']

/** The sandbox plays the gateway over the wire: it shares the rules of signing and of amounts, nothing else. */
const SANDBOX_MAY = ['gateway/signature.ts', 'money.ts', 'config.ts', 'settings.ts']
const MAY_IMPORT_SANDBOX = ['demo.ts']

/** The same rule between the folders of the sandbox; the files beside them hold what they share. */
const SANDBOX_LAYERS: readonly (readonly string[])[] = [
  ['faults'],
  ['ipn'],
  ['cards', 'paygate'],
  ['control'],
  ['page'],
]

/** Where a published part of the package is entered: it may pass on from the files of its own folder. */
const DOORS = ['client/entry.ts']

const ROOT = fileURLToPath(new URL('../src', import.meta.url))

type Import = { from: string; to: string; typeOnly: boolean }

const files = readdirSync(ROOT, { recursive: true, encoding: 'utf8' })
  .filter((file) => file.endsWith('.ts'))
  .map((file) => file.replaceAll('\\', '/'))
const imports = files.flatMap(readImports)

/** Imports between our own files. `import { type X }` is kept by the compiler, so it counts as one at run time. */
function readImports(file: string): Import[] {
  const text = read(file)
  const statement = /^(import|export)( type)?\b[^;'"]*?\bfrom\s+'(\.[^']+)'/gm
  const bare = /\bimport\s*\(?\s*'(\.[^']+)'/g
  const resolve = (to: string) => posix.join(dirname(file), to)
  return [
    ...[...text.matchAll(statement)].map(([, , type, to = '']) => ({
      from: file,
      to: resolve(to),
      typeOnly: type !== undefined,
    })),
    ...[...text.matchAll(bare)].map(([, to = '']) => ({
      from: file,
      to: resolve(to),
      typeOnly: false,
    })),
  ]
}

function read(file: string): string {
  return readFileSync(join(ROOT, file), 'utf8')
}

function nameUnit(file: string): string {
  return file.includes('/') ? file.slice(0, file.indexOf('/')) : file.replace(/\.ts$/, '')
}

function isAllowed({ from, to, typeOnly }: Import): boolean {
  const [unit, target] = [nameUnit(from), nameUnit(to)]
  if (typeOnly && (SHARED_TYPES.includes(to) || SHARED_TYPES.includes(from))) return true
  if (unit === target) return true
  if (target === 'sandbox') return MAY_IMPORT_SANDBOX.includes(from)
  if (unit === 'sandbox') return SANDBOX_MAY.includes(to)
  const row = LAYERS.findIndex((layer) => layer.includes(unit))
  const targetRow = LAYERS.findIndex((layer) => layer.includes(target))
  return row !== -1 && targetRow !== -1 && targetRow < row
}

const show = ({ from, to }: Import) => `${from} → ${to}`

it("units of work go through `runInTransaction`: the driver's own is not safe when a connection is lost", () => {
  expect(files.filter((file) => /\bsql\s*\.begin\(|\.savepoint\(/.test(read(file)))).toEqual([])
  expect(files.filter((file) => read(file).includes('runInTransaction(')).length).toBeGreaterThan(4)
})

describe('imports', () => {
  it('are found: the reader of this test sees the files and what they import', () => {
    expect(imports.length).toBeGreaterThan(150)
    expect(imports.every(({ to }) => files.includes(to))).toBe(true)
    expect(imports.map(show)).toContain('main.ts → demo.ts')
  })

  it('point one way, by the table', () => {
    expect(imports.filter((one) => !isAllowed(one)).map(show)).toEqual([])
  })

  it('point one way between the folders of the sandbox, too', () => {
    const layerOf = (file: string) =>
      SANDBOX_LAYERS.findIndex((layer) => layer.some((at) => file.startsWith(`sandbox/${at}/`)))
    const between = imports.filter(
      ({ from, to }) => layerOf(from) !== -1 && layerOf(to) !== -1 && dirname(from) !== dirname(to),
    )
    expect(between.length).toBeGreaterThan(10)
    expect(between.filter(({ from, to }) => layerOf(to) >= layerOf(from)).map(show)).toEqual([])
    const folders = files.flatMap((file) => /^sandbox\/([^/]+)\//.exec(file)?.[1] ?? [])
    expect([...new Set(folders)].sort()).toEqual(SANDBOX_LAYERS.flat().sort())
  })

  it('of the shared types are of types only, in them and of them', () => {
    const shared = imports.filter(
      ({ from, to }) => SHARED_TYPES.includes(from) || SHARED_TYPES.includes(to),
    )
    expect(shared.filter(({ typeOnly }) => !typeOnly).map(show)).toEqual([])
  })

  it('of the client stay in its folder: it needs neither the service nor a package, and runs anywhere', () => {
    const own = files.filter((file) => file.startsWith('client/'))
    expect(own).toContain('client/entry.ts')
    const from = own.flatMap(
      (file) => read(file).match(/(?<=\bfrom |\bimport\s*\(?\s*)'[^']+'/g) ?? [],
    )
    expect(from.length).toBeGreaterThan(20)
    expect(from.filter((one) => !/^'\.\/[a-z-]+\.ts'$/.test(one))).toEqual([])
  })

  it('make no cycle at run time', () => {
    const next = new Map<string, string[]>()
    for (const { from, to, typeOnly } of imports) {
      if (!typeOnly) next.set(from, [...(next.get(from) ?? []), to])
    }
    const done = new Set<string>()
    const findCycle = (file: string, path: string[]): string[] | undefined => {
      if (path.includes(file)) return [...path.slice(path.indexOf(file)), file]
      if (done.has(file)) return undefined
      for (const to of next.get(file) ?? []) {
        const cycle = findCycle(to, [...path, file])
        if (cycle) return cycle
      }
      done.add(file)
      return undefined
    }
    expect(files.map((file) => findCycle(file, [])).find(Boolean)).toBeUndefined()
  })

  it('the table and the exceptions name only what is there', () => {
    const units = new Set(files.map(nameUnit))
    expect(LAYERS.flat().filter((unit) => !units.has(unit))).toEqual([])
    const named = [...SHARED_TYPES, ...SANDBOX_MAY, ...MAY_IMPORT_SANDBOX, ...DOORS]
    expect(named.filter((file) => !files.includes(file))).toEqual([])
  })
})

describe('every file', () => {
  it('has no default export and passes nothing on from another file', () => {
    const wrong = files.filter(
      (file) =>
        !DOORS.includes(file) &&
        /^export default\b|^export (type )?(\*|\{[^}]*\}) from\b/m.test(read(file)),
    )
    expect(wrong).toEqual([])
  })

  it('stays below 300 lines', () => {
    // Every table stands on one page, in the order money flows: split, nobody would see the whole.
    const long = files.filter((file) => read(file).split('\n').length > 300)
    expect(long).toEqual(['db/schema.ts'])
  })

  it('outside gateway/ and sandbox/ holds no wire word', () => {
    const outside = files.filter((file) => !/^(gateway|sandbox)\//.test(file))
    expect(outside.filter((file) => read(file).includes('svc_'))).toEqual([])
    const defaults = outside.filter((file) => /svc/i.test(read(file)))
    expect(defaults).toEqual(['settings.ts'])
  })

  it('but for config.ts reads no environment', () => {
    const readers = files.filter((file) => /process\.env\b/.test(read(file)))
    expect(readers.filter((file) => file !== 'config.ts')).toEqual([])
  })

  it('but for loop.ts holds no timer that begins work again', () => {
    const timers = files.filter((file) => /\bsetInterval\(/.test(read(file)))
    expect(timers).toEqual([])
  })
})
