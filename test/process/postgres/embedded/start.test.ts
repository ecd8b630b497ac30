import { mkdirSync, readdirSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { startEmbeddedPostgres } from '../../../../src/platform/postgres/embedded.ts'
import { EmbeddedPostgresError } from '../../../../src/platform/postgres/embedded-binaries.ts'
import {
  makeFolder,
  query,
  readAnswer,
  runOwner,
  Started,
  startElsewhere,
  startHere,
  waitUntilGone,
} from '../../../support/embedded.ts'
import { readProcess, readServerPid } from '../../../support/processes.ts'
import { waitUntil } from '../../../support/wait-until.ts'

describe('the embedded database', { timeout: 60_000 }, () => {
  it('is created on the first start, for loopback and its own user only, answers, and logs what is fatal', async () => {
    const folder = join(makeFolder(), 'made', 'too')
    const lines: string[] = []
    const database = await startHere(folder, { log: (line) => lines.push(line) })
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
    expect(statSync(database.dataDir).mode & 0o777).toBe(0o700)
    expect(statSync(join(database.dataDir, 'ipn-password')).mode & 0o777).toBe(0o600)
    expect(readdirSync(folder).filter((name) => name.includes('init'))).toEqual([])
    // No statement that failed is logged.
    await expect(query(database.url, 'select secret')).rejects.toThrow('secret')
    const stranger = database.url.replace(/:[^:@]+@/, ':wrong@')
    await expect(query(stranger, 'select 1')).rejects.toThrow()
    await waitUntil(() => lines.length > 0, { what: 'a line in the log' })
    expect(lines).toEqual([
      'database server: FATAL:  password authentication failed for user "postgres"',
    ])
  })

  it('refuses a folder whose server runs, and names that process', async () => {
    const folder = makeFolder()
    const { server, url } = await startElsewhere(folder)
    const refusal = await startEmbeddedPostgres({ dataDir: folder }).catch((error) => error)
    expect(refusal).toBeInstanceOf(EmbeddedPostgresError)
    expect(refusal.message).toBe(
      `the database in ${folder} is in use by process ${server}, its server: stop the process that started it, or this one (kill -INT ${server}) if that was killed; or set another DATA_DIR, or set DATABASE_URL`,
    )
    expect(await query(url, 'select 1 as one')).toEqual([{ one: 1 }])
  })

  it('refuses a second start in the same process too, and frees the folder when stopped', async () => {
    const folder = makeFolder()
    const first = await startHere(folder)
    await expect(startHere(folder)).rejects.toThrow('in use by process')
    const server = readServerPid(first.dataDir)
    await Promise.all([first.stop(), first.stop()])
    expect(readProcess(server)).toBeUndefined()
    await first.stop()
    await startHere(folder)
  })

  it('is started once by two processes that create it at the same time', async () => {
    const folder = makeFolder()
    const answers = await Promise.all(
      [1, 2].map(async () => await readAnswer(runOwner([folder, 'hold']))),
    )
    const [started, ...others] = answers.filter((one) => Started.safeParse(one).success)
    expect(others).toEqual([])
    expect(JSON.stringify(answers)).toContain('in use by process')
    expect(await query(Started.parse(started).url, 'select 1 as one')).toEqual([{ one: 1 }])
    expect(readdirSync(folder)).toEqual(['postgres'])
  })

  it('that another version of Postgres made is refused, and nothing in its folder is touched', async () => {
    const folder = makeFolder()
    mkdirSync(join(folder, 'postgres'))
    writeFileSync(join(folder, 'postgres/PG_VERSION'), '15\n')
    await expect(startHere(folder)).rejects.toThrow(
      /postgres was made by Postgres 15, .* DATA_DIR, or set DATABASE_URL$/,
    )
    expect(readdirSync(folder, { recursive: true })).toEqual(['postgres', 'postgres/PG_VERSION'])
  })

  it('does not keep a process running that has nothing else to do, and ends with it', async () => {
    const { owner, server } = await startElsewhere(makeFolder(), 'leave')
    await waitUntilGone(owner)
    await waitUntilGone(server)
  })

  it('does not notice a Ctrl-C in the terminal: its process decides when it stops', async () => {
    const owner = runOwner([makeFolder(), 'hold'], { detached: true })
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
})
