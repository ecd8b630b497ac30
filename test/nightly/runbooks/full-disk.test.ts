import { execFileSync } from 'node:child_process'
import { createWriteStream, statfsSync } from 'node:fs'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { expect, it, onTestFinished } from 'vitest'
import { isRoot, makeFolder } from '../../support/embedded.ts'
import { waitUntil } from '../../support/wait-until.ts'
import { startInstallation } from './installation.ts'
import { programs, readLines, startServer } from './shell.ts'

/** Writes into a file until its disk is full. */
async function fillDisk(file: string): Promise<void> {
  const bytes = function* () {
    for (;;) yield Buffer.alloc(4_096)
  }
  await expect(pipeline(Readable.from(bytes()), createWriteStream(file))).rejects.toThrow('ENOSPC')
}

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
