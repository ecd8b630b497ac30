import { readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { EmbeddedPostgresError } from '../../../../src/platform/postgres/embedded/error.ts'
import { readProcess } from '../../../../src/platform/postgres/embedded/processes.ts'
import { startEmbeddedPostgres } from '../../../../src/platform/postgres/embedded/start.ts'
import {
  makeFolder,
  query,
  READ_BACK,
  readAnswer,
  runFixture,
  STORE,
  Started,
  startElsewhere,
  startHere,
  waitUntilGone,
} from '../../../support/embedded.ts'
import { waitUntil } from '../../../support/wait-until.ts'

describe('the embedded database', { timeout: 60_000 }, () => {
  it('is created on the first start, for loopback and its own user only, and answers', async () => {
    const folder = join(makeFolder(), 'made', 'too')
    const database = await startHere(folder)
    const [row] = await query(
      database.url,
      `select current_setting('TimeZone') zone, current_setting('listen_addresses') listen,
        current_setting('unix_socket_directories') sockets, current_setting('data_checksums') sums,
        current_setting('server_encoding') encoding,
        (select bool_and(auth_method = 'scram-sha-256') from pg_hba_file_rules) scram`,
    )
    expect(row).toEqual({
      zone: 'UTC',
      listen: '127.0.0.1',
      sockets: '',
      sums: 'on',
      encoding: 'UTF8',
      scram: true,
    })
    expect(database.adopted).toBe(false)
    expect(statSync(database.dataDir).mode & 0o777).toBe(0o700)
    expect(statSync(join(database.dataDir, 'ipn-password')).mode & 0o777).toBe(0o600)
    expect(readdirSync(folder).filter((name) => name.includes('init'))).toEqual([])
  })

  it('keeps its data over a stop and a start, and stop may be called again', async () => {
    const folder = makeFolder()
    const first = await startHere(folder)
    await query(first.url, ...STORE)
    await Promise.all([first.stop(), first.stop()])
    expect(readProcess(first.pid)).toBeUndefined()
    await first.stop()
    const second = await startHere(folder)
    expect(await query(second.url, READ_BACK)).toEqual([{ x: 42 }])
  })

  it('refuses a folder that a running process uses, at once and with a clear message', async () => {
    const folder = makeFolder()
    const { owner, url } = await startElsewhere(folder)
    const begun = performance.now()
    const refusal = await startEmbeddedPostgres({ dataDir: folder }).catch((error) => error)
    expect(performance.now() - begun).toBeLessThan(1_000)
    expect(refusal).toBeInstanceOf(EmbeddedPostgresError)
    expect(refusal.message).toBe(
      `the database in ${folder} is in use by process ${owner}: stop that process, set another DATA_DIR, or set DATABASE_URL`,
    )
    expect(await query(url, 'select 1 as one')).toEqual([{ one: 1 }])
  })

  it('refuses a second start in the same process too, and frees the folder when stopped', async () => {
    const folder = makeFolder()
    const first = await startHere(folder)
    await expect(startHere(folder)).rejects.toThrow(`in use by process ${process.pid}`)
    await first.stop()
    expect((await startHere(folder)).pid).not.toBe(first.pid)
  })

  it('does not keep a process running that has nothing else to do, and ends with it', async () => {
    const { owner, server } = await startElsewhere(makeFolder(), 'leave')
    await waitUntilGone(owner)
    await waitUntilGone(server)
  })

  it('does not notice a Ctrl-C in the terminal: its process decides when it stops', async () => {
    const owner = runFixture('embedded-owner', [makeFolder(), 'hold'], { detached: true })
    const { url } = Started.parse(await readAnswer(owner))
    const interrupted = readAnswer(owner)
    process.kill(-(owner.pid ?? 0), 'SIGINT')
    expect(await interrupted).toEqual({ interrupted: true })
    expect(await query(url, 'select 1 as one')).toEqual([{ one: 1 }])
  })

  it('reports why it does not start, and leaves the folder free', async () => {
    const folder = makeFolder()
    const settings = { fsync: 'off', shared_buffers: 'much' }
    const refusal = await startEmbeddedPostgres({ dataDir: folder, settings }).catch((e) => e)
    expect(refusal).toBeInstanceOf(EmbeddedPostgresError)
    expect(refusal.message).toContain('FATAL: invalid value for parameter "shared_buffers": "much"')
    expect(refusal.message).toContain('DATABASE_URL')
    expect(refusal.message).not.toContain('\n')
    await startHere(folder)
  })

  it('logs what is fatal, and no statement that failed', async () => {
    const lines: string[] = []
    const { url } = await startHere(makeFolder(), { log: (line) => lines.push(line) })
    await expect(query(url, 'select secret')).rejects.toThrow('secret')
    await expect(query(url.replace(/:[^:@]+@/, ':wrong@'), 'select 1')).rejects.toThrow()
    await waitUntil(() => lines.length > 0, { what: 'a line in the log' })
    expect(lines).toEqual([
      'database server: FATAL:  password authentication failed for user "postgres"',
    ])
  })
})
