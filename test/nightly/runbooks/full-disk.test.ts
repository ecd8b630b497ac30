import { execFileSync } from 'node:child_process'
import { statfsSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import { isRoot, makeFolder } from '../../support/embedded.ts'
import { waitUntil } from '../../support/wait-until.ts'
import { fillDisk } from '../fill-disk.ts'
import { startInstallation } from './installation.ts'
import { programs, readLines, startServer } from './shell.ts'

// Only root may mount a disk of its own.
it.skipIf(!programs || !isRoot)(
  'a full disk is found and enlarged by the lines of the page, and nothing is lost',
  async () => {
    const disk = makeFolder()
    const mount = (...options: string[]) =>
      void execFileSync('mount', ['-t', 'tmpfs', ...options, 'tmpfs', disk])
    mount('-o', 'size=400m,mode=755')
    onTestFinished(() => void execFileSync('umount', [disk]))
    const { url, shell } = await startServer(disk)
    const { readReady, untilServed, expectInOrder } = await startInstallation(shell, url)
    await untilServed()
    await fillDisk(join(disk, 'full'))
    const isFull = async () => (await readReady('web')).includes('the disk of the database is full')
    await waitUntil(isFull, { what: 'the disk is noticed', timeoutMs: 60_000 })
    const doctor = await shell.play('npm run -s cli -- doctor', [1])
    expect(doctor).toMatch(/^ERROR +disk .*the disk of the database is full/m)
    const [look = '', after = ''] = await readLines('When the disk of the database is full')
    expect(await shell.play(look)).toMatch(/100% /)
    // The operator enlarges it.
    mount('-o', 'remount,size=600m')
    expect(statfsSync(disk).bavail).toBeGreaterThan(0)
    await shell.play(after)
    await untilServed()
    await expectInOrder()
  },
  600_000,
)
