import { expect, it } from 'vitest'
import { startInstallation } from './installation.ts'
import { programs, readLines, startServer } from './shell.ts'

it.skipIf(!programs)(
  'the encryption key is changed by the lines of the page while everything goes on',
  async () => {
    const { url, shell } = await startServer()
    await shell.play('npm run -s cli -- migrate')
    const { restart, untilServed, expectInOrder } = await startInstallation(shell, url)
    await untilServed()
    const old = shell.env.DATA_ENCRYPTION_KEY ?? ''
    const [change = '', after = ''] = await readLines('The encryption key')
    expect(await shell.play(change)).toMatch(/^ok +key .*opens what is stored/m)
    expect(shell.env.DATA_ENCRYPTION_KEY).not.toBe(old)
    await restart()
    await untilServed()
    const resealed = await shell.play(after)
    expect(resealed).toMatch(
      /^encrypted again: [1-9]\d* receivers, [1-9]\d* events.*; 0 unreadable$/m,
    )
    expect(resealed).toMatch(/^ok +key .*opens what is stored/m)
    await restart()
    await untilServed()
    await shell.play('npm run -s cli -- audit verify')
    const key = `DATA_ENCRYPTION_KEY=${old}`
    expect(await shell.play(`${key} node dist/main.js --check`, [1])).toMatch(/^FAIL +key /m)
    await expectInOrder()
  },
  600_000,
)
