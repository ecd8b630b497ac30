import { spawnSync } from 'node:child_process'
import {
  chmodSync,
  chownSync,
  cpSync,
  existsSync,
  lstatSync,
  readdirSync,
  rmSync,
  statSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { z } from 'zod'
import {
  completeBinaries,
  EmbeddedPostgresError,
  findPackage,
} from '../../../../src/platform/postgres/embedded-binaries.ts'
import {
  isRoot,
  makeFolder,
  query,
  readAnswer,
  runOwnerAs,
  startHere,
} from '../../../support/embedded.ts'

const NOBODY = { uid: 65534, gid: 65534 }

describe('the files of the embedded database', { timeout: 60_000 }, () => {
  it('work in a folder under a home that is closed to others', async () => {
    const home = makeFolder(0o700)
    const folder = join(home, '.data')
    const lines: string[] = []
    const first = await startHere(folder, { log: (line) => lines.push(line) })
    onTestFinished(() => {
      if (!first.dataDir.startsWith(home)) rmSync(dirname(first.dataDir), { recursive: true })
    })
    await query(first.url, 'create table kept as select 42 as x')
    await first.stop()
    const second = await startHere(folder)
    expect(await query(second.url, 'select x from kept')).toEqual([{ x: 42 }])

    // Root's server runs as another user, who cannot reach the folder: the files are elsewhere, and this is logged.
    const kept = isRoot ? '/var/lib/ipn-processor/' : folder
    expect(first.dataDir.startsWith(kept)).toBe(true)
    expect(lines.filter((line) => line.includes(`cannot reach ${folder}`))).toHaveLength(
      isRoot ? 1 : 0,
    )
  })

  it('work for a user without any rights', async () => {
    const folder = makeFolder()
    const user = isRoot ? NOBODY : {}
    if (isRoot) chownSync(folder, NOBODY.uid, NOBODY.gid)
    const answer = await readAnswer(runOwnerAs(user, [folder, 'hold']))
    const { url } = z.object({ url: z.string() }).parse(answer)
    expect(await query(url, 'select 1 as one')).toEqual([{ one: 1 }])
    expect(statSync(join(folder, 'postgres')).uid).toBe(isRoot ? NOBODY.uid : process.getuid?.())
  })

  it('are completed when the install script of the binaries was not run, by whoever starts first', () => {
    const copy = makeFolder()
    cpSync(findPackage(), copy, { recursive: true, verbatimSymlinks: true })
    const lib = join(copy, 'native/lib')
    const isLink = (name: string) => lstatSync(join(lib, name)).isSymbolicLink()
    for (const name of readdirSync(lib).filter(isLink)) rmSync(join(lib, name))
    const initdb = join(copy, 'native/bin/initdb')
    chmodSync(initdb, 0o644)
    const run = () => spawnSync(initdb, ['--version'], { encoding: 'utf8' }).stdout ?? ''
    expect(run()).not.toContain('PostgreSQL')
    completeBinaries(copy)
    expect(run()).toContain('initdb (PostgreSQL)')
    const links = readdirSync(lib).filter(isLink)
    expect(links.length).toBeGreaterThan(5)
    expect(links.filter((name) => !existsSync(join(lib, name)))).toEqual([])
    // Another process that starts now finds them there.
    completeBinaries(copy)
    expect(run()).toContain('initdb (PostgreSQL)')
  })

  it('are reported as missing on a platform that has no package', () => {
    expect(() => findPackage('sunos', 'sparc')).toThrow(EmbeddedPostgresError)
    expect(() => findPackage('sunos', 'sparc')).toThrow(
      /sunos-sparc is not installed.*DATABASE_URL/,
    )
  })
})
