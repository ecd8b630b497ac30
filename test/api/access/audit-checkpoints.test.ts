import { randomUUID } from 'node:crypto'
import { beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest'
import { recordEntry } from '../../../src/access/audit.ts'
import {
  addCheckpoint,
  createAuditPass,
  deleteExpiredEntries,
} from '../../../src/access/audit-checkpoints.ts'
import { openDatabase } from '../../../src/db/client.ts'
import { AUDIT_CHECKPOINT_LOCK } from '../../../src/db/names.ts'
import { runInTransaction } from '../../../src/platform/postgres/transaction.ts'
import { useAuditLog } from '../../support/audit-log.ts'
import { holdLocks } from '../../support/database.ts'
import { startTestService } from '../../support/service.ts'
import { waitUntil } from '../../support/wait-until.ts'

const audit = useAuditLog()
beforeEach(() => audit.clear())

const DAY = 24 * 60
const listCheckpoints = async () =>
  (
    await audit.database.sql<{ id: number; rows: number }[]>`
      select up_to_id as id, rows from audit_checkpoints order by up_to_id`
  ).map(({ id, rows }) => `${rows} up to ${id}`)
const countEntries = async () => (await audit.database.sql`select from audit_entries`).length
const ACTOR = { id: null, name: 'a', requestId: 'r' }
const WRITE = { operation: 'o', merchantCode: 'A', objectId: 'x' }

describe('an entry', () => {
  it('is a line of the log once it is committed', async () => {
    const { database, log, logged } = audit
    await runInTransaction(database.sql, async (tx) => {
      await recordEntry(tx, log, ACTOR, WRITE)
      expect(logged).toEqual([])
    })
    await recordEntry(database.sql, log, ACTOR, WRITE, 'refused')
    expect(logged.map((line) => JSON.parse(line))).toMatchObject([
      { entryId: 101, actor: 'a', ...WRITE, outcome: 'done', msg: 'audit entry' },
      { entryId: 102, outcome: 'refused', requestId: 'r' },
    ])
  })

  it('that is rolled back is no line of the log', async () => {
    const { database, log, logged } = audit
    const failing = runInTransaction(database.sql, async (tx) => {
      await recordEntry(tx, log, ACTOR, WRITE)
      throw new Error('after the entry')
    })
    await expect(failing).rejects.toThrow('after the entry')
    expect(logged).toEqual([])
  })
})

describe('a checkpoint', () => {
  it('has the entries of all accounts, as many as fit, and is a line of the log', async () => {
    await audit.write(2)
    await audit.write(2, 'B')
    await audit.write(1, null)
    await audit.sign(3)
    expect(await listCheckpoints()).toEqual(['3 up to 103', '2 up to 105'])
    expect(await audit.find()).toEqual([])
    const { last } = await audit.verify()
    expect(audit.logged.map((line) => JSON.parse(line))).toMatchObject([
      { checkpoint: expect.stringMatching(/^103:[0-9a-f]{64}$/), entries: 3 },
      { checkpoint: last, entries: 2, msg: 'audit checkpoint' },
    ])
  })

  it('ends before the first entry that is younger than ten minutes, also if older ones follow', async () => {
    await audit.write(1, 'A', 11)
    await audit.write(1, 'B', 9)
    await audit.write(1, 'A', 11)
    await audit.sign()
    expect(await listCheckpoints()).toEqual(['1 up to 101'])
  })

  it('has an entry of a transaction that was open for 60 s, with those committed after it', async () => {
    const { database } = audit
    await audit.write(1)
    const late = await holdLocks(
      database,
      (tx) => tx`
        insert into audit_entries (at, actor, operation, outcome) values (now() - interval '60 s', 'a', 'o', 'done')`,
    )
    await audit.write(2, 'A', 59 / 60)
    await audit.sign()
    await late.release()
    await audit.sign()
    expect(await listCheckpoints()).toEqual(['1 up to 101'])
    await database.sql`update audit_entries set at = at - interval '10 minutes' where id > 101`
    await audit.sign()
    expect(await listCheckpoints()).toEqual(['1 up to 101', '3 up to 104'])
    expect(await audit.find()).toEqual([])
  })

  it.each(['infinity', '-infinity', '2999-01-01'])('is not held up by the time %s', async (at) => {
    await audit.database.sql`
      insert into audit_entries (at, actor, operation, outcome) values (${at}::text::timestamptz, 'a', 'o', 'done')`
    await audit.write(1)
    await audit.sign()
    expect(await listCheckpoints()).toEqual(['2 up to 102'])
  })

  it('is written by one of two processes at once', async () => {
    const { database, encryption, log } = audit
    await audit.write(2)
    const other = await holdLocks(
      database,
      (tx) => tx`select pg_advisory_xact_lock(${tx.unsafe(AUDIT_CHECKPOINT_LOCK)})`,
    )
    expect(await addCheckpoint({ db: database, encryption, log })).toBe(0)
    expect(await listCheckpoints()).toEqual([])
    await other.release()
    const both = [1, 2].map(() => addCheckpoint({ db: database, encryption, log }))
    expect((await Promise.all(both)).sort()).toEqual([0, 2])
    expect(await listCheckpoints()).toEqual(['2 up to 102'])
  })
})

describe('retention', () => {
  it('deletes whole checkpoints from the beginning, and what is left can be verified', async () => {
    await audit.write(3, 'A', 401 * DAY)
    await audit.write(1, 'B', 399 * DAY)
    await audit.sign(2)
    // The second has an entry that is not old enough.
    expect(await audit.expire()).toBe(2)
    expect(await audit.verify()).toMatchObject({ startId: 102, verified: 2, count: 0 })
    await audit.write(1)
    await audit.sign()
    expect(await audit.find()).toEqual([])
    await audit.database.sql`update audit_entries set at = at - interval '2 days'`
    expect(await audit.find()).toEqual(['differs 102-104', 'differs 104-105'])
  })

  it('goes on from the start that it left, also when nothing else is left', async () => {
    await audit.write(4, 'A', 401 * DAY)
    await audit.sign(2)
    expect(await audit.expire()).toBe(4)
    expect(await countEntries()).toBe(0)
    await audit.write(1)
    await audit.sign()
    expect(await audit.verify()).toMatchObject({ startId: 104, verified: 1, count: 0 })
  })

  it('leaves entries that are in no checkpoint', async () => {
    await audit.write(3, 'A', 401 * DAY)
    expect(await audit.expire()).toBe(0)
    expect(await countEntries()).toBe(3)
  })

  it.each([
    ['a changed time', `update audit_entries set at = at - interval '500 days'`],
    ['an added entry', `update audit_entries set id = 99 where id = 104`],
  ])('makes nothing disappear after %s', async (_, statement) => {
    await audit.write(3, 'A', statement.includes('id = 99') ? 401 * DAY : 15)
    await audit.sign()
    await audit.write(1, 'A', 401 * DAY)
    await audit.database.sql.unsafe(statement)
    expect(await audit.expire()).toBe(0)
    expect(await countEntries()).toBe(4)
  })

  it('deletes nothing while another process adds or deletes a checkpoint', async () => {
    await audit.write(2, 'A', 401 * DAY)
    await audit.sign()
    const other = await holdLocks(
      audit.database,
      (tx) => tx`select pg_advisory_xact_lock(${tx.unsafe(AUDIT_CHECKPOINT_LOCK)})`,
    )
    expect(await audit.expire()).toBe(0)
    await other.release()
    expect([await countEntries(), await audit.expire()]).toEqual([2, 2])
  })

  it('says in one line what differs, and once more an hour later, although it stays so', async () => {
    await audit.write(1, 'A', 401 * DAY)
    await audit.sign()
    await audit.database.sql`update audit_entries set actor = 'another'`
    const { database, log, encryption, logged } = audit
    const config = { RETENTION_DAYS: 400 }
    const pass = createAuditPass({ db: database, log, encryption, config })
    const countLines = () =>
      logged.filter((line) => line.includes('are not those of their checkpoint')).length
    vi.useFakeTimers({ toFake: ['performance'] })
    onTestFinished(() => void vi.useRealTimers())
    for (let minute = 0; minute < 3; minute += 1) {
      expect(await pass()).toBe(0)
      vi.advanceTimersByTime(60_000)
    }
    expect(countLines()).toBe(1)
    vi.advanceTimersByTime(3_600_000)
    expect(await pass()).toBe(0)
    expect([countLines(), await countEntries()]).toEqual([2, 1])
  })

  it('makes nothing disappear after a start that it did not sign', async () => {
    await audit.write(4, 'A', 401 * DAY)
    await audit.sign(2)
    await audit.database
      .sql`update audit_checkpoints set start_mac = sha256('x') where up_to_id = 102`
    await audit.database.sql`delete from audit_entries where id <= 102`
    expect(await audit.expire()).toBe(0)
    expect(await countEntries()).toBe(2)
  })
})

it('a role that may only insert and read writes and signs entries, changes none, and leaves retention to another', async () => {
  const role = `"audit-${randomUUID()}"`
  const { database, encryption, log } = audit
  await database.sql.unsafe(`create role ${role}; grant usage on schema public to ${role};
    grant select, insert on audit_entries, audit_checkpoints to ${role};
    grant usage on sequence audit_entries_id_seq to ${role}`)
  const db = openDatabase(database.url, 1)
  const { sql } = db
  try {
    await sql.unsafe(`set role ${role}`)
    await audit.write(2, 'A', 401 * DAY)
    await recordEntry(sql, log, ACTOR, WRITE)
    expect(await addCheckpoint({ db, log, encryption })).toBe(2)
    for (const statement of [
      `update audit_entries set actor = 'b'`,
      'delete from audit_entries',
      `update audit_checkpoints set mac = sha256('x')`,
      'delete from audit_checkpoints',
      'truncate audit_entries',
    ]) {
      await expect(sql.unsafe(statement)).rejects.toMatchObject({ code: '42501' })
    }
    const config = { RETENTION_DAYS: 400 }
    const deleted = deleteExpiredEntries({ db, log, encryption, config }, () => {})
    expect(await deleted.catch(String)).toBe(0)
    expect(await audit.expire()).toBe(2)
  } finally {
    await db.close()
    await database.sql.unsafe(`drop owned by ${role}; drop role ${role}`)
  }
})

it('a worker signs what is old enough and deletes what is expired, and its metrics show what waits', async () => {
  const { database } = audit
  await audit.write(2, 'A', 401 * DAY)
  await audit.sign()
  await audit.write(2)
  await audit.write(1, 'A', 5)
  const settings = { ROLE: 'worker', DATA_ENCRYPTION_KEY: Buffer.alloc(32, 9).toString('base64') }
  const service = await startTestService(database, 'http://127.0.0.1:9', { settings })
  try {
    await waitUntil(async () => (await audit.verify()).startId === 102, { what: 'retention' })
    await waitUntil(async () => (await listCheckpoints()).length === 2, { what: 'the checkpoint' })
    // The one that waits besides is that of the key of the service.
    expect(await audit.verify()).toMatchObject({ verified: 2, waiting: 2, count: 0 })
    const text = await (await fetch(`${service.url}/metrics`)).text()
    const [, age] = /^audit_checkpoint_age_seconds (\S+)$/m.exec(text) ?? []
    expect(Number(age)).toBeGreaterThanOrEqual(300)
    expect(Number(age)).toBeLessThan(600)
  } finally {
    await service.stop()
  }
})
