import { beforeEach, describe, expect, it } from 'vitest'
import { createChainEntries } from '../../../src/audit-chain/chain-entries.ts'
import { createHeadLog } from '../../../src/audit-chain/log-heads.ts'
import { rechain } from '../../../src/audit-chain/rechain.ts'
import { createLog } from '../../../src/platform/telemetry/log.ts'
import { useAuditChain } from '../../support/audit-chain.ts'
import { holdLocks } from '../../support/database.ts'
import { startTestService } from '../../support/service.ts'
import { waitUntil } from '../../support/wait-until.ts'

const audit = useAuditChain()
beforeEach(() => audit.clear())

const position = async (merchantCode?: string) =>
  Number((await audit.head(merchantCode)).split(':')[0])

const INSERT = `insert into audit_entries (actor, operation, merchant_code, outcome) values ('a', 'o', 'A', 'done')`

describe('the pass', () => {
  it('chains the entries of each account, and those of none, in batches of any size', async () => {
    await audit.write(5)
    await audit.write(2, 'B')
    await audit.write(3, null)
    await audit.chain(2)
    await audit.write(1, 'B')
    await audit.chain()
    expect([await position('A'), await position('B'), await position('*')]).toEqual([5, 3, 3])
    expect(audit.logged.join()).toContain(await audit.head('A'))
    expect(await audit.verify()).toEqual([])
  })

  it('makes no write wait, and chains an entry that is committed behind later ones', async () => {
    const { database } = audit
    await audit.write(1)
    const late = await holdLocks(database, (tx) => tx.unsafe(INSERT))
    for (const _ of [1, 2, 3]) {
      await audit.write(1)
      await audit.chain()
    }
    expect(await position()).toBe(4)
    await late.release()
    await audit.chain()
    expect(await position()).toBe(5)
    expect(await audit.verify()).toEqual([])
  })

  it('reads the newest entries only, once all earlier ones are chained', async () => {
    await audit.write(20)
    await audit.chain(10)
    await audit.chainAll()
  })

  it('goes on after the transaction numbers of another cluster', async () => {
    const { sql } = audit.database
    await audit.write(2)
    await audit.chain()
    await sql`update audit_progress set next_xid = 9e15`
    await audit.chainAll()
    const [row] = await sql`select done_up_to > 0 as goes_on from audit_progress`
    expect(row).toEqual({ goes_on: true })
  })

  it('that stops between two rounds is continued by another process', async () => {
    const { database, encryption } = audit
    await audit.write(5)
    const ctx = { sql: database.sql, encryption, log: createLog('silent') }
    expect(await createChainEntries(ctx, 2)()).toBe(2)
    expect(await position()).toBe(2)
    await audit.chain()
    expect(await position()).toBe(5)
    expect(await audit.verify()).toEqual([])
  })

  it('chains anew what was dropped while it was under way', async () => {
    const { database, encryption } = audit
    await audit.write(2, 'B')
    await audit.write(5)
    for (const _ of [1, 2]) await audit.chain()
    const drop = (code: string) =>
      database.sql.begin(async (tx) => await rechain(tx, encryption, code))
    await drop('A')
    const ctx = { sql: database.sql, encryption, log: createLog('silent') }
    const pass = createChainEntries(ctx, 3)
    expect(await pass()).toBe(3)
    await drop('B')
    while ((await pass()) > 0);
    for (const _ of [1, 2]) await audit.chain()
    expect(await audit.verify()).toEqual([])
    expect(await position('B')).toBe(4)
  })

  it('runs in one process at a time: the other does nothing', async () => {
    const { database, encryption } = audit
    await audit.write(2)
    const turn = await holdLocks(database, (tx) => tx`select pg_advisory_xact_lock(4815162346)`)
    const ctx = { sql: database.sql, encryption, log: createLog('silent') }
    expect(await createChainEntries(ctx)()).toBe(0)
    expect(await database.sql`select from audit_links`).toHaveLength(0)
    await turn.release()
    await audit.chain()
    expect(await position()).toBe(2)
  })

  it.each([
    ['a changed link', `update audit_links set hash = sha256('x') where position = 2`],
    ['a link at the end', `insert into audit_links values ('A', 3, 77, sha256('x'))`],
    ['a deleted end', `delete from audit_links where position = 2`],
    ['a changed head', `update audit_chains set head_hash = sha256('x')`],
    ['a lost head', 'delete from audit_chains'],
  ])('signs nothing after %s, and goes on with other accounts', async (_, statement) => {
    await audit.write(2)
    await audit.chain()
    await audit.database.sql.unsafe(statement)
    await audit.write(1)
    await audit.write(1, 'B')
    await audit.chain()
    await audit.chain()
    expect(await position('B')).toBe(1)
    const links = await audit.database.sql`
      select from audit_links as l join audit_entries as e on e.id = l.entry_id
      where l.merchant_code = 'A' and e.id = (select max(id) from audit_entries where merchant_code = 'A')`
    expect(links).toHaveLength(0)
    expect(
      audit.logged.filter((line) => line.includes('was changed in the database')),
    ).toHaveLength(2)
  })
})

it('heads are logged at the first pass and then once a day', async () => {
  const { database, encryption } = audit
  let now = 0
  const lines: string[] = []
  const log = createLog('info', { write: (line) => void lines.push(line) })
  const ctx = { sql: database.sql, encryption, log }
  const pass = createChainEntries(
    ctx,
    10,
    createHeadLog(ctx, () => now),
  )
  await audit.write(1)
  for (const at of [0, 60_000, 86_399_999]) {
    now = at
    await pass()
  }
  expect(lines).toHaveLength(1)
  expect(JSON.parse(lines[0] ?? '')).toMatchObject({ merchant: 'A', head: await audit.head() })
  now = 86_400_000
  await pass()
  expect(lines).toHaveLength(2)
})

it('a worker chains what is written, deletes what is expired, and its metrics show the head', async () => {
  const { database } = audit
  await audit.write(2, 'A', 401)
  await audit.write(1)
  await audit.chain()
  await audit.write(2)
  const settings = { ROLE: 'worker', DATA_ENCRYPTION_KEY: Buffer.alloc(32, 9).toString('base64') }
  const service = await startTestService(database, 'http://127.0.0.1:9', { settings })
  try {
    const isDone = async () =>
      (
        await database.sql`
        select from audit_chains where merchant_code = 'A' and head_position = 5 and start_position = 2`
      ).length > 0
    await waitUntil(isDone, { what: 'the chain' })
    const head = await audit.head()
    const text = await (await fetch(`${service.url}/metrics`)).text()
    const hash = Number.parseInt(head.slice(2, 14), 16)
    expect(text).toContain('audit_chain_position{merchant="A"} 5')
    expect(text).toContain(`audit_chain_hash{merchant="A"} ${hash}`)
    const [, lag] = /^audit_chain_lag_seconds (\S+)$/m.exec(text) ?? []
    expect(Number(lag)).toBeLessThan(60)
  } finally {
    await service.stop()
  }
})
