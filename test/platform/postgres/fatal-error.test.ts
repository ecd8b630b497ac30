import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { openDatabase } from '../../../src/db/client.ts'
import { createFatalFilter } from '../../../src/platform/postgres/fatal-error.ts'
import { createTestDatabase, type TestDatabase } from '../../support/database.ts'
import { waitUntil } from '../../support/wait-until.ts'

let database: TestDatabase
beforeAll(async () => {
  database = await createTestDatabase()
})
afterAll(() => database.drop())

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

const message = (type: string, body: Buffer) => {
  const head = Buffer.alloc(5)
  head.write(type)
  head.writeUInt32BE(body.length + 4, 1)
  return Buffer.concat([head, body])
}
const error = (severity: string) =>
  message('E', Buffer.from(`S${severity}\0V${severity}\0C57P01\0Mended\0\0`))
const READY = message('Z', Buffer.from('I'))
const ROW = message('D', Buffer.from('a row with EZEZ in it'))

/** Sends the bytes through a filter in chunks of a size. */
function filterIn(size: number, bytes: Buffer) {
  const filter = createFatalFilter()
  const passed: Buffer[] = []
  let fatal: Error | undefined
  for (let at = 0; at < bytes.length; at += size) {
    const result = filter(bytes.subarray(at, at + size))
    passed.push(result.passed)
    fatal ??= result.fatal
  }
  return { passed: Buffer.concat(passed), fatal }
}

describe('however a session is cut into chunks, the filter', () => {
  const sizes = Array.from({ length: 120 }, (_, index) => index + 1)

  it('takes out the error that ends it, and nothing else', () => {
    for (const size of sizes) {
      const before = Buffer.concat([READY, ROW, error('ERROR'), READY, ROW])
      const { passed, fatal } = filterIn(size, Buffer.concat([before, error('FATAL')]))
      expect(passed.equals(before), `in chunks of ${size}`).toBe(true)
      expect(fatal).toMatchObject({ message: 'ended', severity: 'FATAL', code: '57P01' })
    }
  })

  it('passes the error that refuses a session on', () => {
    for (const size of sizes) {
      const refused = Buffer.concat([ROW, error('FATAL')])
      const { passed, fatal } = filterIn(size, refused)
      expect(passed.equals(refused), `in chunks of ${size}`).toBe(true)
      expect(fatal).toBeUndefined()
    }
  })
})
