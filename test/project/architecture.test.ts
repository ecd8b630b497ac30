import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import {
  findFileCycle,
  findFolderCycle,
  findUpward,
  type Import,
  nameRoom,
  ROWS,
  readImports,
} from './imports.ts'

const ROOT = fileURLToPath(new URL('../../src', import.meta.url))

/** The sandbox is a gateway over the wire: it shares only the rules of signing and amounts, and the settings. */
const SANDBOX_MAY = [
  ...['gateway/signature.ts', 'http/server.ts', 'money.ts', 'platform/html/components.tsx'],
  ...['platform/html/document.tsx', 'platform/html/style.ts', 'config/accounts.ts'],
  ...['config/config.ts', 'config/environment.ts'],
]

const files = readdirSync(ROOT, { recursive: true, encoding: 'utf8' })
  .map((file) => file.replaceAll('\\', '/'))
  .filter((file) => /\.tsx?$/.test(file))
const read = (file: string) => readFileSync(join(ROOT, file), 'utf8')
const imports = files.flatMap((file) => readImports(file, read(file)))
const show = ({ from, to }: Import) => `${from} → ${to}`

describe('imports', () => {
  it('are found, including dynamic imports and types', () => {
    expect(imports.length).toBeGreaterThan(900)
    expect(imports.filter(({ to }) => !files.includes(to)).map(show)).toEqual([])
    expect(imports.map(show)).toContain('start/start.ts → demo.ts')
    expect(imports.map(show)).toContain('context.ts → gateway/client.ts')
  })

  it('go to strictly lower rows', () => {
    expect(findUpward(imports).map(show)).toEqual([])
  })

  it('form no cycle of files', () => {
    expect(findFileCycle(imports)).toBeUndefined()
  })

  it('form no cycle of folders, at any depth', () => {
    expect(findFolderCycle(imports)).toBeUndefined()
  })

  it.each([
    ['a value', `import { runInTransaction } from '../sync/sync-due.ts'`],
    ['a type', `import type { Claim } from '../sync/types.ts'`],
    ['a module at run time', `const { syncDue } = await import('../sync/sync-due.ts')`],
    ['a neighbour of the same row', `import { findRefund } from '../ipn/inbox.ts'`],
    ['the sandbox', `import { startSandbox } from '../sandbox/start.ts'`],
    ['a room that is in no row', `import { x } from '../nowhere/x.ts'`],
  ])('a planted upward import of %s is found', (_, statement) => {
    const planted = readImports('refunds/planted.ts', statement)
    expect(findUpward([...imports, ...planted])).toEqual(planted)
  })

  it('a planted cycle of files is found, also one of types alone', () => {
    const [one] = readImports('money.ts', `import type { X } from './version.ts'`)
    const [other] = readImports('version.ts', `import type { Y } from './money.ts'`)
    if (!one || !other) throw new Error('no import was planted')
    expect(findFileCycle([...imports, one])).toBeUndefined()
    const cycle = findFileCycle([...imports, one, other])
    expect(new Set(cycle)).toEqual(new Set(['money.ts', 'version.ts']))
  })

  it('a planted cycle of folders is found even if the files form none', () => {
    const planted = readImports(
      'platform/crypto/planted.ts',
      `import type { X } from '../postgres/by-key.ts'`,
    )
    const [back] = readImports('platform/postgres/planted.ts', `import '../crypto/other.ts'`)
    if (!back) throw new Error('no import was planted')
    expect(findFileCycle([...imports, ...planted, back])).toBeUndefined()
    expect(findFolderCycle([...imports, ...planted, back])?.toSorted()).toEqual(
      expect.arrayContaining(['platform/crypto', 'platform/postgres']),
    )
  })

  it('between sync and refunds go one way, and one file calls all five steps', () => {
    const of = (file: string) => imports.filter(({ from }) => from === file).map(({ to }) => to)
    expect(of('sync/sync-transaction.ts')).toEqual(
      expect.arrayContaining([
        'sync/commit.ts',
        'refunds/attempt.ts',
        'sync/record-refund-answer.ts',
      ]),
    )
    expect(of('sync/commit.ts')).toContain('refunds/reconcile.ts')
  })

  it('of the sandbox leave its folder only for code that both sides of the wire share', () => {
    const outside = imports.filter(
      ({ from, to }) => nameRoom(from) === 'sandbox' && nameRoom(to) !== 'sandbox',
    )
    expect(outside.length).toBeGreaterThan(10)
    expect(outside.filter(({ to }) => !SANDBOX_MAY.includes(to)).map(show)).toEqual([])
  })

  it('of the client stay in its folder: it needs neither the service nor a package', () => {
    const folder = join(ROOT, '../client/src')
    const from = readdirSync(folder).flatMap(
      (file) =>
        readFileSync(join(folder, file), 'utf8').match(/(?<=\bfrom |\bimport\s*\(?\s*)'[^']+'/g) ??
        [],
    )
    expect(from.length).toBeGreaterThan(20)
    expect(from.filter((one) => !/^'\.\/[a-z.-]+\.ts'$/.test(one))).toEqual([])
  })
})

describe('the table of rows', () => {
  it('names every folder, and no other', () => {
    const rooms = new Set(files.map(nameRoom))
    expect(ROWS.flat().toSorted()).toEqual([...rooms].toSorted())
  })

  it('the exceptions name only files that exist', () => {
    expect(SANDBOX_MAY.filter((file) => !files.includes(file))).toEqual([])
  })
})

describe('every file', () => {
  it('is in a folder, except for a few at the root', () => {
    expect(files.filter((file) => !file.includes('/')).length).toBeLessThanOrEqual(12)
  })

  it('has no default export and re-exports nothing', () => {
    const wrong = files.filter((file) =>
      /^export default\b|^export (type )?(\*|\{[^}]*\}) from\b/m.test(read(file)),
    )
    expect(wrong).toEqual([])
  })

  it('stays below 300 lines', () => {
    // All tables are on one page, in the order money flows, to give an overview.
    const long = files.filter((file) => read(file).split('\n').length > 300)
    expect(long).toEqual(['db/schema.ts', 'console/texts/catalogue.ts'])
  })

  it('outside gateway/ and sandbox/ contains no wire names', () => {
    const outside = files.filter((file) => !/^(gateway|sandbox)\//.test(file))
    expect(outside.filter((file) => read(file).includes('svc_'))).toEqual([])
    const defaults = outside.filter((file) => /svc/i.test(read(file)))
    expect(defaults).toEqual(['config/settings.ts'])
  })

  it('of the platform is independent of payments', () => {
    const platform = files.filter((file) => file.startsWith('platform/'))
    expect(platform.length).toBeGreaterThan(20)
    expect(platform.filter((file) => /payment|refund/i.test(read(file)))).toEqual([])
  })

  it('outside config does not read the environment', () => {
    const readers = files.filter((file) => /process\.env\b/.test(read(file)))
    expect(readers.filter((file) => !file.startsWith('config/'))).toEqual([])
  })

  it('contains no repeating timer: only the worker loop repeats work', () => {
    expect(files.filter((file) => /\bsetInterval\(/.test(read(file)))).toEqual([])
  })

  it("opens transactions with `runInTransaction`: the driver's own is unsafe when a connection is lost", () => {
    expect(files.filter((file) => /\bsql\s*\.begin\(|\.savepoint\(/.test(read(file)))).toEqual([])
    expect(files.filter((file) => read(file).includes('runInTransaction(')).length).toBeGreaterThan(
      4,
    )
  })
})
