import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { openDatabase } from '../../../../src/db/client.ts'
import { createSessionFilter } from '../../../../src/platform/postgres/session-filter.ts'
import { type BorrowedDatabase, borrowDatabase } from '../../../support/database.ts'
import { waitUntil } from '../../../support/wait-until.ts'

let database: BorrowedDatabase
beforeAll(async () => {
  database = await borrowDatabase()
})
afterAll(() => database.release())

describe('a session that the server ends', () => {
  it('fails its own statement with the reason, and no statement of the next session', async () => {
    const one = openDatabase(database.url, 1)
    onTestFinished(() => one.close())
    for (let round = 1; round <= 3; round += 1) {
      const ended = expect(one.sql`select pg_sleep(60)`).rejects.toMatchObject({
        name: 'PostgresError',
        severity: 'FATAL',
        code: '57P01',
      })
      await waitUntil(
        async () => {
          const killed = await database.sql`
            select pg_terminate_backend(pid) from pg_stat_activity
            where datname = current_database() and query like '%pg_sleep(60)%' and wait_event = 'PgSleep'`
          return killed.length > 0
        },
        { what: 'the statement runs, and its session is ended' },
      )
      await ended
      expect(await one.sql`select ${round}::int as round`).toEqual([{ round }])
    }
  })

  it('fails no transaction of the next session either', async () => {
    const one = openDatabase(database.url, 1)
    onTestFinished(() => one.close())
    await expect(one.sql`select pg_terminate_backend(pg_backend_pid())`).rejects.toThrow()
    expect(await one.sql.begin((tx) => tx`select 1 as one`)).toEqual([{ one: 1 }])
  })
})

const message = (type: string, body: Buffer | string) => {
  const bytes = Buffer.from(body)
  const head = Buffer.alloc(5)
  head.write(type)
  head.writeUInt32BE(bytes.length + 4, 1)
  return Buffer.concat([head, bytes])
}
const fields = (severity: string, code: string, more = '') =>
  `S${severity}\0V${severity}\0C${code}\0Mended\0${more}\0`
const error = (severity: string, code = '57P01') => message('E', fields(severity, code))
const READY = message('Z', 'I')
const ROW = message('D', 'a row with EZEZ in it')
const STATUS = message('S', 'in_hot_standby\0off\0')
const NOTICE = message('N', fields('WARNING', '01000', 'RSomethingElse\0'))
/** Its text is German, as with `lc_messages = de_DE`: only the function that reports it is always the same. */
const CANCELLED_WAIT = message('N', fields('WARNING', '01000', 'RSyncRepWaitForLSN\0'))

const column = (value: string) => {
  const bytes = Buffer.from(`\0\0\0\0${value}`)
  bytes.writeUInt32BE(value.length, 0)
  return bytes
}
const setUpRow = (readOnly: 'on' | 'off') =>
  message('D', Buffer.concat([Buffer.from('\0\u0003'), ...['warning', 'on', readOnly].map(column)]))
/** What a server sends until the session is open: its greeting, and the answer to the set-up. */
const GREETING = Buffer.concat([message('R', '\0\0\0\0'), STATUS])
const SET_UP = Buffer.concat([message('T', 'columns'), setUpRow('off'), message('C', 'SELECT 1\0')])
const OPENED = Buffer.concat([GREETING, READY, SET_UP, READY])

/** Sends the bytes through a filter in chunks of a size. */
function filterIn(size: number, bytes: Buffer) {
  const sent: Buffer[] = []
  const filter = createSessionFilter((own) => sent.push(own))
  const passed: Buffer[] = []
  for (let at = 0; at < bytes.length; at += size) {
    const result = filter.read(bytes.subarray(at, at + size))
    passed.push(result.passed)
    if (result.end) return { passed: Buffer.concat(passed), sent, end: result.end }
  }
  return { passed: Buffer.concat(passed), sent, end: undefined }
}

const SIZES = Array.from({ length: 120 }, (_, index) => index + 1)

describe('however a session is cut into chunks, the filter', () => {
  it('sets the session up before the driver learns that it is open, and passes everything else on', () => {
    for (const size of SIZES) {
      const rest = Buffer.concat([ROW, error('ERROR', '23505'), READY, NOTICE, ROW, READY])
      const { passed, sent, end } = filterIn(size, Buffer.concat([OPENED, rest]))
      const expected = Buffer.concat([GREETING, READY, rest])
      expect(passed.equals(expected), `in chunks of ${size}`).toBe(true)
      expect(String(sent)).toMatch(/^Q.*set_config\('synchronous_commit'.*\0$/s)
      expect(end).toBeUndefined()
    }
  })

  it.each([
    ['the error that ends it', error('FATAL'), { severity: 'FATAL', code: '57P01' }, 'session'],
    ['the refusal of a read-only server', error('ERROR', '25006'), { code: '25006' }, 'pool'],
    ['a cancelled wait for the standby', CANCELLED_WAIT, { code: 'COMMIT_UNREPLICATED' }, 'pool'],
  ])('ends it with %s, and passes nothing on from there', (_what, last, created, scope) => {
    for (const size of SIZES) {
      const before = Buffer.concat([OPENED, ROW, error('ERROR', '23505'), READY, ROW])
      const bytes = Buffer.concat([before, last, message('C', 'COMMIT\0'), READY])
      const { passed, end } = filterIn(size, bytes)
      const expected = Buffer.concat([GREETING, before.subarray(OPENED.length - READY.length)])
      expect(passed.equals(expected), `in chunks of ${size}`).toBe(true)
      expect(end?.createError()).toMatchObject({ message: 'ended', ...created })
      expect(end?.scope).toBe(scope)
    }
  })

  it('ends one whose server is read-only, or refuses to be set up, before the driver uses it', () => {
    for (const size of SIZES) {
      for (const [answer, code, scope] of [
        [setUpRow('on'), '25006', 'server'],
        [error('ERROR', '42501'), '42501', 'session'],
      ] as const) {
        const { passed, end } = filterIn(size, Buffer.concat([GREETING, READY, answer, READY]))
        expect(passed.equals(GREETING), `in chunks of ${size}`).toBe(true)
        expect(end?.createError()).toMatchObject({ code })
        expect(end?.scope).toBe(scope)
      }
    }
  })

  it('passes the error that refuses a session on', () => {
    for (const size of SIZES) {
      const refused = Buffer.concat([ROW, error('FATAL')])
      const { passed, end } = filterIn(size, refused)
      expect(passed.equals(refused), `in chunks of ${size}`).toBe(true)
      expect(end).toBeUndefined()
    }
  })
})
