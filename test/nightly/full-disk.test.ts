import { execFileSync } from 'node:child_process'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import { migrateDatabase } from '../../src/db/migrate.ts'
import { Report, runCli } from '../support/cli.ts'
import { isRoot, makeFolder, startHere } from '../support/embedded.ts'
import { settingsFor } from '../support/process.ts'
import { postIpn, signIpn, startTestService } from '../support/service.ts'
import { waitUntil } from '../support/wait-until.ts'
import { fillDisk } from './fill-disk.ts'

// Only root may mount a file system of its own, which is small enough to be filled.
it.skipIf(!isRoot)(
  'a process is not ready while the disk of its database is really full, and is again when it is not',
  async () => {
    const folder = makeFolder()
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=160m,mode=755', 'tmpfs', folder])
    onTestFinished(() => void execFileSync('umount', [folder]))
    const { url } = await startHere(folder, { settings: { fsync: 'off', autovacuum: 'off' } })
    await migrateDatabase(url)
    const settings = { ROLE: 'web' }
    const service = await startTestService({ url }, 'http://127.0.0.1:9', { settings })
    onTestFinished(() => service.stop())
    const ready = async () => {
      const answer = await fetch(`${service.url}/readyz`)
      return `${answer.status} ${await answer.text()}`
    }
    expect(await ready()).toContain('200')

    await fillDisk(join(folder, 'full'))
    expect(await ready()).toMatch(/^503 .*the disk of the database is full/)
    // Into the space that the tables have left, until they have to grow.
    const isRefused = async () =>
      (await postIpn(service.url, signIpn({ svc_TransactionID: `T-${Math.random()}` }))).status >=
      500
    await waitUntil(isRefused, { what: 'a notification that finds no room' })
    expect(await ready()).toMatch(/^503 .*the disk of the database is full/)
    const { out } = await runCli(['doctor', '--json'], settingsFor(url, 'http://127.0.0.1:9'))
    expect(Report.parse(JSON.parse(out)).findings).toContainEqual({
      id: 'disk',
      severity: 'error',
      finding: expect.stringMatching(
        /^the disk of the database is full: nothing new can be stored/,
      ),
      action: 'look at the free space of the database server',
    })

    rmSync(join(folder, 'full'))
    const isReady = async () => (await ready()).startsWith('200')
    await waitUntil(isReady, { what: 'ready', timeoutMs: 30_000 })
    expect((await postIpn(service.url, signIpn({ svc_TransactionID: 'T-AFTER' }))).status).toBe(200)
  },
  120_000,
)
