import { beforeEach, describe, expect, it } from 'vitest'
import {
  computeFirstHash,
  computeLinkHash,
  type HashedEntry,
  selectEntry,
} from '../../../src/audit-chain/entry-hash.ts'
import { verifyChains } from '../../../src/audit-chain/verify-chains.ts'
import { openDataKeys } from '../../../src/db/data-keys.ts'
import { AUDIT_KEY, useAuditChain } from '../../support/audit-chain.ts'
import { runCli } from '../../support/cli.ts'

const audit = useAuditChain()
/** The entries of `A`, at the positions 1 to 6, and the first id that is not used. */
let ids: number[]
beforeEach(async () => {
  await audit.clear()
  await audit.database.sql`alter sequence audit_entries_id_seq restart with 101`
  ids = await audit.write(6)
  await audit.write(2, 'B')
  // Twice: then everything up to the newest id is known to be chained.
  await audit.chainAll()
})

const run = (statement: string) => audit.database.sql.unsafe(statement)

/** Recomputes the links of `A` from the entries as they are now, as far as that is possible without the key. */
async function rewriteLinks() {
  const { sql } = audit.database
  const entries = await sql<HashedEntry[]>`
    select ${sql.unsafe(selectEntry('e'))} from audit_entries as e where merchant_code = 'A' order by id`
  let hash = computeFirstHash('A')
  await sql`delete from audit_links where merchant_code = 'A'`
  for (const [at, entry] of entries.entries()) {
    hash = computeLinkHash(hash, 'A', at + 1, entry)
    await sql`insert into audit_links values ('A', ${at + 1}, ${entry.id}, ${hash})`
  }
  return { position: entries.length, hash }
}

it('an untouched log is intact, also while entries wait for the next round', async () => {
  await audit.write(2)
  expect(await audit.verify()).toEqual([])
})

describe('a change of one entry is found:', () => {
  it.each([
    ['id', '999', ['missing 3', 'not_chained']],
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
  ])('%s becomes %s', async (column, value, expected = ['changed 3']) => {
    await run(`update audit_entries set ${column} = ${value} where id = 103`)
    const found = await audit.verify()
    expect(found[0]).toBe(expected[0])
  })

  it('every column is tried here', async () => {
    const rows = await audit.database.sql<{ name: string }[]>`
      select column_name as name from information_schema.columns where table_name = 'audit_entries'`
    const tried = [
      'id',
      'at',
      'key_id',
      'actor',
      'operation',
      'merchant_code',
      'object_id',
      'request_id',
      'outcome',
    ]
    expect(rows.map(({ name }) => name).sort()).toEqual(tried.sort())
  })
})

describe('tampering with the log is found:', () => {
  it.each([
    [
      'an entry in the middle is deleted',
      'delete from audit_entries where id = 103',
      ['missing 3'],
    ],
    [
      'the same with its link',
      `delete from audit_entries where id = 103; delete from audit_links where merchant_code = 'A' and position = 3`,
      ['link_missing 3'],
    ],
    [
      'the same, and the gap is closed',
      `delete from audit_entries where id = 103; delete from audit_links where merchant_code = 'A' and position = 3;
       update audit_links set position = -position where merchant_code = 'A' and position > 3;
       update audit_links set position = -position - 1 where position < 0`,
      ['changed 3', 'changed 4', 'changed 5', 'cut_off 6'],
    ],
    ['the last entry is deleted', 'delete from audit_entries where id = 106', ['missing 6']],
    [
      'the same with its link',
      `delete from audit_entries where id = 106; delete from audit_links where merchant_code = 'A' and position = 6`,
      ['cut_off 6'],
    ],
    [
      'an entry is added with an id of the past',
      `insert into audit_entries (id, actor, operation, merchant_code, outcome) values (50, 'a', 'o', 'A', 'done')`,
      ['inserted entry 50'],
    ],
    [
      'the same with a link before the start',
      `insert into audit_entries (id, actor, operation, merchant_code, outcome) values (50, 'a', 'o', 'A', 'done');
       insert into audit_links values ('A', 0, 50, sha256('x'))`,
      ['before_start 0'],
    ],
    [
      'the same with a link after the end',
      `insert into audit_entries (id, actor, operation, merchant_code, outcome) values (50, 'a', 'o', 'A', 'done');
       insert into audit_links values ('A', 7, 50, sha256('x'))`,
      ['changed 7', 'appended 7'],
    ],
    [
      'the same with a chain of its own',
      `insert into audit_entries (id, actor, operation, merchant_code, outcome) values (50, 'a', 'o', 'C', 'done');
       insert into audit_links values ('C', 1, 50, sha256('x'))`,
      ['no_signed_head null', 'changed 1'],
    ],
    [
      'the pass is kept from an entry',
      `update audit_progress set done_up_to = 1000;
       insert into audit_entries (actor, operation, merchant_code, outcome) values ('a', 'o', 'A', 'done')`,
      ['inserted entry 109'],
    ],
    [
      'two entries are swapped',
      `update audit_entries a set actor = b.actor, object_id = b.object_id, key_id = b.key_id, request_id = b.request_id
       from audit_entries b where (a.id, b.id) in ((102, 104), (104, 102))`,
      ['changed 2', 'changed 4'],
    ],
    [
      'two links are swapped',
      `update audit_links set position = -position where merchant_code = 'A' and position in (2, 4);
       update audit_links set position = 6 + position where position < 0`,
      ['changed 2', 'changed 3', 'changed 4', 'changed 5'],
    ],
    [
      'the signed head is deleted',
      `delete from audit_chains where merchant_code = 'A'`,
      ['no_signed_head null'],
    ],
    [
      "the signed head is another account's",
      `update audit_chains a set (start_hash, head_position, head_hash, mac) =
         (select start_hash, head_position, head_hash, mac from audit_chains where merchant_code = 'B')
       where merchant_code = 'A'`,
      ['signature null', 'changed 1', 'appended 3'],
    ],
    [
      'the start is moved over an entry',
      `update audit_chains set (start_position, start_hash) =
         (select position, hash from audit_links as l where merchant_code = 'A' and position = 3)
       where merchant_code = 'A';
       delete from audit_entries where id in (101, 102, 103);
       delete from audit_links where merchant_code = 'A' and position <= 3`,
      ['signature null'],
    ],
  ])('%s', async (_, statement, expected) => {
    await run(statement)
    expect((await audit.verify()).map((one) => one.replace('entry null', 'null'))).toEqual(expected)
  })

  it('an entry is chained with a time of the past', async () => {
    await run(`insert into audit_entries (at, actor, operation, merchant_code, outcome)
      values (now() - interval '2 hours', 'a', 'o', 'A', 'done')`)
    expect(await audit.verify()).toEqual(['not_chained entry 109'])
    await audit.chain()
    expect(await audit.verify()).toEqual(['backdated 7'])
  })

  it('an entry is linked into the chain of another account', async () => {
    await run(`insert into audit_entries (at, actor, operation, merchant_code, outcome)
      values (now() - interval '2 hours', 'a', 'o', 'A', 'done')`)
    await run(`insert into audit_links values ('Z', 1, 109, sha256(''))`)
    expect(await audit.verify({ merchantCode: 'A' })).toEqual(['not_chained entry 109'])
  })

  it('an entry is changed, and all links are computed anew', async () => {
    await run(`update audit_entries set actor = 'somebody else' where id = 102`)
    const { hash } = await rewriteLinks()
    expect(await audit.verify()).toEqual(['rewritten 6'])
    await audit.database.sql`update audit_chains set head_hash = ${hash} where merchant_code = 'A'`
    expect(await audit.verify()).toEqual(['signature entry null'])
    // The pass does not sign it either.
    await audit.write(1)
    await audit.chain()
    expect((await audit.verify())[0]).toBe('signature entry null')
  })
})

describe('a database that was set back, with its signed head,', () => {
  const TABLES = ['audit_entries', 'audit_links', 'audit_chains']

  it('is missed by a noted head also if nothing of its chain is left', async () => {
    const [position = '', hash = ''] = (await audit.head()).split(':')
    const noted = { position: Number(position), hash: hash.slice(0, 12) }
    for (const table of TABLES) await run(`delete from ${table} where merchant_code = 'A'`)
    expect(await audit.verify({ merchantCode: 'A' })).toEqual([])
    expect(await audit.verify({ merchantCode: 'A', noted })).toContain('shorter_than_noted 6')
  })

  it('is found by a head that was noted, also after it went on', async () => {
    for (const table of TABLES) await run(`create table old_${table} as table ${table}`)
    await audit.write(2)
    await audit.chain()
    const [position = '', hash = ''] = (await audit.head()).split(':')
    const noted = { position: Number(position), hash: hash.slice(0, 12) }
    expect(await audit.verify({ merchantCode: 'A', noted })).toEqual([])
    for (const table of TABLES) {
      await run(
        `delete from ${table}; insert into ${table} table old_${table}; drop table old_${table}`,
      )
    }
    expect(await audit.verify()).toEqual([])
    expect(await audit.verify({ merchantCode: 'A', noted })).toEqual(['shorter_than_noted 8'])
    await audit.write(4)
    await audit.chain()
    expect(await audit.verify()).toEqual([])
    expect(await audit.verify({ merchantCode: 'A', noted })).toEqual(['other_than_noted 8'])
  })
})

it('heads stay valid under another DATA_ENCRYPTION_KEY', async () => {
  const { sql } = audit.database
  const current = Buffer.alloc(32, 8).toString('base64')
  await openDataKeys(sql, { current, previous: AUDIT_KEY })
  const rotated = await openDataKeys(sql, { current })
  const { chains } = await verifyChains(sql, rotated)
  expect(chains.map(({ count, verified }) => [count, verified])).toEqual([
    [0, 6],
    [0, 2],
  ])
  await openDataKeys(sql, { current: AUDIT_KEY, previous: current })
})

describe('cli audit verify', () => {
  const verify = (...args: string[]) =>
    runCli(['audit', 'verify', ...args], {
      DATABASE_URL: audit.database.url,
      DATA_ENCRYPTION_KEY: AUDIT_KEY,
    })

  it('prints each chain with its head, and exits with 0', async () => {
    const { code, out, err } = await verify()
    expect([code, err]).toEqual([0, 'the audit log is intact: 8 entries verified\n'])
    expect(out).toContain(await audit.head('A'))
    expect(out).toContain(await audit.head('B'))
  })

  it('prints what it finds, and exits with 1; other accounts are left out on request', async () => {
    await run(`update audit_entries set actor = 'x' where id = 103`)
    const { code, out, err } = await verify()
    expect([code, err]).toEqual([
      1,
      '1 finding: the audit log may have been changed: 7 entries verified\n',
    ])
    expect(out).toContain('A, position 3, entry 103: changed: the entry, its place or its link')
    expect((await verify('--merchant', 'B')).code).toBe(0)
    const { chains } = JSON.parse((await verify('--json')).out)
    expect(chains[0].findings).toEqual([{ kind: 'changed', position: 3, entryId: ids[2] }])
  })

  it('compares a noted head', async () => {
    const head = await audit.head()
    expect((await verify('--merchant', 'A', '--head', head)).code).toBe(0)
    expect((await verify('--merchant', 'A', '--head', `7:${'0'.repeat(12)}`)).code).toBe(1)
  })

  it.each([
    [['--head', `1:${'0'.repeat(12)}`], 'name it with --merchant'],
    [['--merchant', 'A', '--head', '1:xyz'], 'Write a position'],
    [['--merchant', 'NOBODY'], 'no audit chain yet'],
  ])('%j is refused with exit code 2', async (args, why) => {
    const { code, out, err } = await verify(...args)
    expect([code, out]).toEqual([2, ''])
    expect(err).toContain(why)
  })

  it('rechain accepts the entries as they are, and is recorded', async () => {
    await run(`update audit_entries set actor = 'x' where id = 103`)
    const env = { DATABASE_URL: audit.database.url, DATA_ENCRYPTION_KEY: AUDIT_KEY }
    const { code, out } = await runCli(['audit', 'rechain', '--merchant', 'A'], env)
    expect([code, out]).toEqual([
      0,
      'The new chain of A starts after position 6; a worker appends the entries.\n',
    ])
    await audit.chain()
    expect(await audit.verify()).toEqual([])
    // Six entries, and the one that records it.
    expect((await audit.head()).split(':')[0]).toBe('13')
  })
})
