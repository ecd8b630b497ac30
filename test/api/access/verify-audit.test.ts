import { beforeEach, describe, expect, it } from 'vitest'
import { verifyAudit } from '../../../src/access/audit-checkpoints.ts'
import { openDataKeys } from '../../../src/db/data-keys.ts'
import { AUDIT_KEY, useAuditLog } from '../../support/audit-log.ts'
import { runCli } from '../../support/cli.ts'

const audit = useAuditLog()
/** Three checkpoints: 101 to 103, 104 to 106 (of `A`), 107 to 108 (of `B`). */
beforeEach(async () => {
  await audit.clear()
  await audit.write(6)
  await audit.write(2, 'B')
  await audit.sign(3)
})

const run = (statement: string) => audit.database.sql.unsafe(statement)
const DAY = 24 * 60
const ADD = `insert into audit_entries (id, at, actor, operation, outcome)`

it('an untouched log is intact, also while entries wait for the next checkpoint', async () => {
  await audit.write(2, 'A', 1)
  expect(await audit.verify()).toMatchObject({ verified: 8, checkpoints: 3, waiting: 2, count: 0 })
})

describe('a change of one entry is found:', () => {
  const COLUMNS: readonly [column: string, value: string, expected?: string[]][] = [
    ['id', '999'],
    ['id', '-1', ['differs null-103', 'differs 103-106']],
    ['at', `at - interval '1 microsecond'`],
    ['at', `'infinity'`],
    ['at', `(replace(left(at::text, 26), '+', '') || ' BC')::timestamp at time zone 'UTC'`],
    ['key_id', 'gen_random_uuid()'],
    ['key_id', 'null'],
    ['actor', `'somebody else'`],
    ['operation', `'POST /v1/y'`],
    ['merchant_code', `'B'`],
    ['merchant_code', 'null'],
    ['object_id', 'null'],
    ['object_id', `'object-1'`],
    ['request_id', `''`],
    ['outcome', `'refused'`],
  ]

  it.each(COLUMNS)('%s becomes %s', async (column, value, expected = ['differs 103-106']) => {
    await run(`update audit_entries set ${column} = ${value} where id = 104`)
    expect(await audit.find()).toEqual(expected)
  })

  it('every column is tried here', async () => {
    const rows = await audit.database.sql<{ name: string }[]>`
      select column_name as name from information_schema.columns where table_name = 'audit_entries'`
    expect(rows.map(({ name }) => name).sort()).toEqual(
      [...new Set(COLUMNS.map(([name]) => name))].sort(),
    )
  })
})

describe('tampering with the log is found:', () => {
  it.each([
    ['an entry is deleted', 'delete from audit_entries where id = 104', ['differs 103-106']],
    [
      'all entries of a checkpoint are deleted',
      'delete from audit_entries where id between 104 and 106',
      ['differs 103-106'],
    ],
    [
      'the same with the checkpoint',
      `delete from audit_entries where id between 104 and 106;
       delete from audit_checkpoints where up_to_id = 106`,
      ['differs 103-108'],
    ],
    [
      'an entry is added with an id of the past',
      `${ADD} values (50, now(), 'a', 'o', 'done')`,
      ['differs null-103'],
    ],
    [
      'two entries are swapped',
      `update audit_entries a set actor = b.actor, object_id = b.object_id, key_id = b.key_id,
         request_id = b.request_id
       from audit_entries b where (a.id, b.id) in ((102, 104), (104, 102))`,
      ['differs null-103', 'differs 103-106'],
    ],
    [
      'an entry is moved to the next checkpoint',
      'update audit_checkpoints set up_to_id = 105, rows = 2 where up_to_id = 106',
      ['differs 103-105', 'differs 105-108'],
    ],
    [
      'a checkpoint is changed',
      `update audit_checkpoints set mac = sha256('x') where up_to_id = 103`,
      ['differs null-103', 'differs 103-106'],
    ],
    [
      'a checkpoint is added',
      `${ADD} values (109, now() - interval '1 hour', 'a', 'o', 'done');
       insert into audit_checkpoints select 109, 1, mac, mac_key_id from audit_checkpoints where up_to_id = 108`,
      ['differs 108-109'],
    ],
    [
      'the first checkpoint is deleted with its entries',
      'delete from audit_entries where id <= 103; delete from audit_checkpoints where up_to_id = 103',
      ['differs null-106'],
    ],
    [
      'the same with a start that retention did not sign',
      `delete from audit_entries where id <= 103;
       update audit_checkpoints set start_mac = mac where up_to_id = 103`,
      ['forged_start null-103'],
    ],
    [
      'an entry is deleted, and an older signed row takes the place of its checkpoint',
      `delete from audit_entries where id = 107;
       update audit_checkpoints c set (rows, mac) = (select 1, mac from audit_checkpoints where up_to_id = 106)
       where up_to_id = 108`,
      ['differs 106-108'],
    ],
    [
      'the pass is kept from an entry',
      `${ADD} values (109, now() - interval '21 minutes', 'a', 'o', 'done')`,
      ['late 108-null'],
    ],
  ])('%s', async (_, statement, expected) => {
    await run(statement)
    expect(await audit.find()).toEqual(expected)
  })

  it('an account is set back alone to an older copy, with all that is signed of that time', async () => {
    for (const table of ['entries', 'checkpoints']) {
      await run(`create table old_${table} as table audit_${table}`)
    }
    await audit.write(2)
    await audit.write(1, 'B')
    await audit.sign()
    await run(`delete from audit_entries where merchant_code = 'A';
      insert into audit_entries select * from old_entries where merchant_code = 'A';
      delete from audit_checkpoints where up_to_id <= 108; insert into audit_checkpoints table old_checkpoints;
      drop table old_entries, old_checkpoints`)
    expect(await audit.find()).toEqual(['differs 108-111'])
  })

  it('entries stand before the start that retention left', async () => {
    await run(`update audit_entries set at = at - interval '401 days'`)
    await run('delete from audit_checkpoints')
    await audit.sign(3)
    await audit.expire()
    await run(`${ADD} values (50, now(), 'a', 'o', 'done')`)
    expect(await audit.find()).toEqual(['before_start null-108'])
  })

  it('an older start takes the place of the one that retention left', async () => {
    await audit.clear()
    await audit.write(2, 'A', 401 * DAY)
    await audit.sign()
    await audit.expire()
    await run('create table old_start as table audit_checkpoints')
    await audit.write(2, 'A', 401 * DAY)
    await audit.sign()
    await audit.expire()
    await run('insert into audit_checkpoints table old_start; drop table old_start')
    expect(await audit.find()).toEqual(['differs 102-104'])
  })
})

describe('a database that was set back as a whole', () => {
  it('is found by a checkpoint of the log, also after it went on', async () => {
    for (const table of ['entries', 'checkpoints']) {
      await run(`create table old_${table} as table audit_${table}`)
    }
    await audit.write(2)
    await audit.sign()
    const [id = '', mac = ''] = ((await audit.verify()).last ?? '').split(':')
    const noted = { upToId: Number(id), mac: mac.slice(0, 12) }
    expect(await audit.verify(noted)).toMatchObject({ count: 0 })
    for (const table of ['entries', 'checkpoints']) {
      await run(`delete from audit_${table}; insert into audit_${table} table old_${table};
        drop table old_${table}`)
    }
    expect(await audit.find()).toEqual([])
    const missing = [{ kind: 'not_stored', afterId: null, upToId: 110 }]
    expect(await audit.verify(noted)).toMatchObject({ findings: missing })
    await run('alter sequence audit_entries_id_seq restart with 109')
    await audit.write(2)
    await audit.sign()
    expect(await audit.find()).toEqual([])
    expect(await audit.verify(noted)).toMatchObject({ findings: missing })
  })
})

it('checkpoints stay valid under another DATA_ENCRYPTION_KEY', async () => {
  const { sql } = audit.database
  const current = Buffer.alloc(32, 8).toString('base64')
  await openDataKeys(sql, { current, previous: AUDIT_KEY })
  const rotated = await openDataKeys(sql, { current })
  expect(await verifyAudit(sql, rotated)).toMatchObject({ verified: 8, count: 0 })
  await openDataKeys(sql, { current: AUDIT_KEY, previous: current })
})

describe('cli audit verify', () => {
  const verify = (...args: string[]) =>
    runCli(['audit', 'verify', ...args], {
      DATABASE_URL: audit.database.url,
      DATA_ENCRYPTION_KEY: AUDIT_KEY,
    })

  it('prints the newest checkpoint, and exits with 0', async () => {
    const { code, out, err } = await verify()
    expect([code, err]).toEqual([
      0,
      'the audit log is intact: 8 entries verified in 3 checkpoints\n',
    ])
    expect(out).toBe(`the newest checkpoint: ${(await audit.verify()).last}\n`)
  })

  it('prints what it finds, and exits with 1', async () => {
    await run(`update audit_entries set actor = 'x' where id = 104`)
    const { code, out, err } = await verify()
    expect([code, err]).toEqual([
      1,
      '1 finding: the audit log may have been changed: 5 entries verified in 3 checkpoints\n',
    ])
    expect(out).toContain('entries after 103 up to 106: differs: an entry in it was changed')
    const { findings } = JSON.parse((await verify('--json')).out)
    expect(findings).toEqual([{ kind: 'differs', afterId: 103, upToId: 106 }])
  })

  it('looks for a checkpoint of the log', async () => {
    const last = (await audit.verify()).last ?? ''
    expect((await verify('--checkpoint', last)).code).toBe(0)
    const { code, out } = await verify('--checkpoint', `108:${'0'.repeat(12)}`)
    expect([code, out]).toEqual([1, expect.stringContaining('not_stored')])
  })

  it('refuses a key that is not that of the database, with exit code 1', async () => {
    const env = {
      DATABASE_URL: audit.database.url,
      DATA_ENCRYPTION_KEY: Buffer.alloc(32, 7).toString('base64'),
    }
    const { code, out, err } = await runCli(['audit', 'verify'], env)
    expect([code, out]).toEqual([1, ''])
    expect(err).toMatch(/^error: DATA_ENCRYPTION_KEY is not the key .*\n$/)
  })

  it('refuses a checkpoint that it cannot read, or that retention deleted', async () => {
    const wrong = await verify('--checkpoint', '1:xyz')
    expect([wrong.code, wrong.err]).toEqual([2, expect.stringContaining('It must be an id')])
    await audit.clear()
    await audit.write(1, 'A', 401 * DAY)
    await audit.sign()
    await audit.expire()
    const old = await verify('--checkpoint', `100:${'0'.repeat(12)}`)
    expect([old.code, old.err]).toEqual([2, expect.stringContaining('entries up to 101')])
  })
})
