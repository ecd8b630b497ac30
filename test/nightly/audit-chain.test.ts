import { afterAll, beforeAll, expect, it } from 'vitest'
import { createChainEntries } from '../../src/audit-chain/chain-entries.ts'
import { createLog } from '../../src/platform/telemetry/log.ts'
import { useAuditChain } from '../support/audit-chain.ts'
import { type MeasuredConnection, measureConnection } from '../support/buffers.ts'

const MANY = 20_000
const FEW = 10
/** Pages of 8 KiB in a round of so many entries: two tables and three indexes, read and written. Reading all takes more. */
const MOST_BUFFERS = 250

const audit = useAuditChain()
let connection: MeasuredConnection
beforeAll(async () => {
  connection = measureConnection(audit.database)
  for (const name of ['audit_entries', 'audit_links', 'audit_chains', 'audit_progress']) {
    await audit.database
      .sql`alter table ${audit.database.sql(name)} set (autovacuum_enabled = false)`
  }
})
afterAll(() => connection.close())

const insert = (rows: number) => audit.database.sql`
  insert into audit_entries (actor, operation, merchant_code, object_id, request_id, outcome)
  select 'bench', 'POST /v1/payments/{paymentId}/refunds', 'M-' || n % 5, gen_random_uuid()::text,
    gen_random_uuid()::text, 'done' from generate_series(1, ${rows}) as n`

it('a backlog is chained, and after it a round reads by key what is new, with plans made on empty tables', async () => {
  const ctx = { sql: connection.sql, encryption: audit.encryption, log: createLog('silent') }
  const pass = createChainEntries(ctx)
  for (const rows of [0, 1]) {
    await insert(rows)
    await pass()
  }
  await insert(MANY)
  const started = performance.now()
  while ((await pass()) > 0);
  const perSecond = Math.round(MANY / ((performance.now() - started) / 1_000))
  console.log(`a backlog of ${MANY} audit entries: ${perSecond} a second`)
  while ((await pass()) > 0);

  await insert(FEW)
  connection.takeTouched()
  await pass()
  const touched = connection.takeTouched()
  const worst = touched.reduce((a, b) => (b.buffers > a.buffers ? b : a))
  const sum = touched.reduce((all, { buffers }) => all + buffers, 0)
  expect([sum < MOST_BUFFERS, sum, worst]).toEqual([true, sum, worst])
  console.log(`${FEW} new entries: ${sum} pages`)

  connection.takeTouched()
  await pass()
  const idle = connection.takeTouched().reduce((all, { buffers }) => all + buffers, 0)
  // What was new is looked at once more, until no earlier transaction runs.
  expect(idle).toBeLessThan(MOST_BUFFERS)

  const verifying = performance.now()
  expect(await audit.verify({ batch: 2_000 })).toEqual([])
  const seconds = (performance.now() - verifying) / 1_000
  console.log(`verified at ${Math.round(MANY / seconds)} entries a second`)
})
