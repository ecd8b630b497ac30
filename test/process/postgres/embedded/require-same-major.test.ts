import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync, realpathSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import {
  initialiseCluster,
  readPassword,
} from '../../../../src/platform/postgres/embedded/cluster.ts'
import { EmbeddedPostgresError } from '../../../../src/platform/postgres/embedded/error.ts'
import { prepareInstallation } from '../../../../src/platform/postgres/embedded/files.ts'
import { launchServer } from '../../../../src/platform/postgres/embedded/server.ts'
import { startEmbeddedPostgres } from '../../../../src/platform/postgres/embedded/start.ts'
import {
  makeFolder,
  query,
  READ_BACK,
  STORE,
  startHere,
  waitUntilGone,
} from '../../../support/embedded.ts'

const OLD_BIN = '/usr/lib/postgresql/15/bin'

/** Makes a folder that looks like a database of this version. */
function pretend(version: string): string {
  const folder = makeFolder()
  mkdirSync(join(folder, 'postgres'))
  writeFileSync(join(folder, 'postgres/PG_VERSION'), `${version}\n`)
  return folder
}

const list = (folder: string) =>
  readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .sort()
    .map((name) => `${name} ${statSync(join(folder, name)).mtimeMs}`)

async function refuse(dataDir: string): Promise<string> {
  const refusal = await startEmbeddedPostgres({ dataDir }).catch((error) => error)
  expect(refusal).toBeInstanceOf(EmbeddedPostgresError)
  return refusal.message
}

/** Makes a real database of Postgres 15, with data. */
async function createOldDatabase(): Promise<string> {
  const folder = realpathSync(makeFolder())
  const installation = { ...prepareInstallation(folder, () => {}), bin: OLD_BIN }
  await initialiseCluster(installation, false)
  const result = await launchServer(installation, { fsync: 'off' }, () => {})
  if (!('server' in result)) throw new Error(result.failure)
  const { pid, port, closeWatchdog } = result.server
  const password = readPassword(installation.cluster)
  await query(`postgres://postgres:${password}@127.0.0.1:${port}/postgres`, ...STORE)
  closeWatchdog()
  await waitUntilGone(pid)
  return folder
}

describe('a database of another major version of Postgres', { timeout: 60_000 }, () => {
  it('is refused with the command that upgrades it, and nothing in its folder is touched', async () => {
    const folder = pretend('15')
    const before = list(folder)
    const message = await refuse(folder)
    expect(message).toContain(`${join(folder, 'postgres')} was made by Postgres 15`)
    expect(message).toMatch(/`sh \/\S+\/ops\/upgrade-embedded-postgres\.sh \S+ \S+\/15\/bin \S+`/)
    expect(message).not.toContain('\n')
    expect(list(folder)).toEqual(before)
  })

  it('that is newer is refused without one, because a dump cannot go back', async () => {
    const folder = pretend('99')
    const before = list(folder)
    expect(await refuse(folder)).toMatch(/made by Postgres 99.*start the release that made it/)
    expect(list(folder)).toEqual(before)
  })

  it.skipIf(!existsSync(join(OLD_BIN, 'pg_dump')))(
    'starts with its data after that command, and the old files are kept',
    async () => {
      const folder = await createOldDatabase()
      const before = list(folder)
      const command = /`(.+)`/.exec(await refuse(folder))?.[1] ?? ''
      expect(list(folder)).toEqual(before)
      const { status, stderr } = spawnSync('sh', ['-c', command], { encoding: 'utf8' })
      expect({ status, stderr }).toEqual({ status: 0, stderr: '' })
      expect(readdirSync(folder).sort()).toEqual(['postgres', 'postgres.v15'])
      const { url } = await startHere(folder)
      expect(await query(url, READ_BACK)).toEqual([{ x: 42 }])
      expect(await query(url, 'show data_checksums')).toEqual([{ data_checksums: 'on' }])
    },
  )

  it.skipIf(!existsSync(join(OLD_BIN, 'pg_dump')))(
    'stays as it is when the upgrade fails',
    async () => {
      const folder = await createOldDatabase()
      const command = /`(.+)`/.exec(await refuse(folder))?.[1] ?? ''
      const broken = command.replace(/\S+$/, join(folder, 'nowhere'))
      expect(spawnSync('sh', ['-c', broken]).status).not.toBe(0)
      expect(readdirSync(folder)).toEqual(['postgres'])
      expect(spawnSync('sh', ['-c', command]).status).toBe(0)
    },
  )
})
