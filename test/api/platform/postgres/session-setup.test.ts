import postgres from 'postgres'
import { afterEach, describe, expect, inject, it, onTestFinished } from 'vitest'
import { openDatabase } from '../../../../src/db/client.ts'
import { migrateDatabase } from '../../../../src/db/migrate.ts'
import { isDatabaseUnavailable } from '../../../../src/platform/postgres/errors.ts'
import { findWeakCommits, openPool } from '../../../../src/platform/postgres/pool.ts'
import { runInTransaction } from '../../../../src/platform/postgres/transaction.ts'
import type { Sql, Tx } from '../../../../src/platform/postgres/types.ts'
import { startDatabaseProxy } from '../../../support/database-proxy.ts'
import { useOwnDatabase } from '../../../support/use-started.ts'
import { waitUntil } from '../../../support/wait-until.ts'

const CONNECTIONS = 3
const database = useOwnDatabase()

/** Runs a statement on another database of the server. */
async function administer(statement: string) {
  const admin = postgres(inject('serverUrl'), { max: 1 })
  try {
    return await admin.unsafe(statement)
  } finally {
    await admin.end()
  }
}

const change = (setting: string) =>
  administer(`alter database ${new URL(database.url).pathname.slice(1)} ${setting}`)
afterEach(async () => void (await change('reset all')))

function open(parameters = '') {
  const pool = openDatabase(`${database.url}${parameters}`, CONNECTIONS)
  onTestFinished(() => pool.close())
  return pool.sql
}

const readSetting = async (sql: Pick<Sql, 'unsafe'>, name: string) =>
  (await sql.unsafe(`select current_setting('${name}') as value`))[0]?.value

describe('every session', () => {
  it.each([
    ['off', 'on'],
    ['local', 'on'],
    ['remote_write', 'on'],
    ['on', 'on'],
    ['remote_apply', 'remote_apply'],
  ])('commits durably where the default is %s, and waits for no less', async (given, pinned) => {
    await change(`set synchronous_commit = ${given}`)
    const sql = open()
    const reserved = await sql.reserve()
    expect(await readSetting(reserved, 'synchronous_commit')).toBe(pinned)
    reserved.release()
    expect(await readSetting(sql, 'synchronous_commit')).toBe(pinned)
  })

  it('keeps its level when the server reads its settings again', async () => {
    const rows = await open()`select source from pg_settings where name = 'synchronous_commit'`
    // What a session has set outranks what is read again.
    expect(rows).toEqual([{ source: 'session' }])
  })

  it('does so whatever its URL sets', async () => {
    const lowered = open('?synchronous_commit=off&client_min_messages=error')
    expect(await readSetting(lowered, 'synchronous_commit')).toBe('on')
    expect(await readSetting(lowered, 'client_min_messages')).toBe('warning')
    const options = encodeURIComponent('-c synchronous_commit=local -c client_min_messages=error')
    const sql = open(`?options=${options}`)
    expect(await readSetting(sql, 'synchronous_commit')).toBe('on')
    expect(await readSetting(sql, 'client_min_messages')).toBe('warning')
  })

  it('that does not is found out', async () => {
    const { sql, close } = openPool(database.url, 1)
    onTestFinished(close)
    expect(await findWeakCommits(sql)).toBeUndefined()
    await sql`set synchronous_commit = local`
    expect(await findWeakCommits(sql)).toBe('local')
  })

  it('of a migration does so, too', async () => {
    const proxy = await startDatabaseProxy(database.url)
    onTestFinished(() => proxy.stop())
    await migrateDatabase(proxy.url())
    expect(proxy.seen.clear.split("set_config('synchronous_commit'")).toHaveLength(
      proxy.sessions + 1,
    )
  })
})

/** Opens every session of the pool; returns their server processes. */
async function openAll(sql: Sql): Promise<number[]> {
  const rows = await Promise.all(
    Array.from(
      { length: CONNECTIONS },
      () => sql<{ pid: number }[]>`select pg_backend_pid() as pid, pg_sleep(0.1)`,
    ),
  )
  return rows.flatMap(([row]) => row?.pid ?? [])
}

describe('a read-only server', () => {
  it('counts as out of reach, and opens no session', async () => {
    await change('set default_transaction_read_only = on')
    const error = await open()`select 1`.catch((reason: unknown) => reason)
    expect(error).toMatchObject({ code: '25006' })
    expect(isDatabaseUnavailable(error)).toBe(true)
  })

  it.each([
    [
      'statement that it refuses',
      async (tx: Tx) => {
        await tx`set transaction read only`
        await tx`insert into stored values (1)`
      },
    ],
    ['sign that it is one', (tx: Tx) => tx`set session characteristics as transaction read only`],
  ])('loses every session with the first %s, until it accepts writes again', async (_, refuse) => {
    const sql = open()
    await sql`create table if not exists stored (n int)`
    const store = () => runInTransaction(sql, async (tx) => await tx`insert into stored values (1)`)
    const before = await openAll(sql)
    expect(new Set(before).size).toBe(CONNECTIONS)
    await change('set default_transaction_read_only = on')
    const refused = runInTransaction(sql, async (tx) => await refuse(tx))
    await expect(refused).rejects.toMatchObject({ code: '25006' })
    const countLeft = async () =>
      (await administer(`select from pg_stat_activity where pid in (${before.join()})`)).length
    await expect.poll(countLeft, { timeout: 20_000 }).toBe(0)
    await expect(store()).rejects.toMatchObject({ code: '25006' })
    await change('reset default_transaction_read_only')
    await waitUntil(async () => await store().then(Boolean, () => false), { what: 'it stores' })
  })
})
