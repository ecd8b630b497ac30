import { afterAll, beforeAll, expect, it } from 'vitest'
import { addCheckpoint } from '../../src/access/audit-checkpoints.ts'
import { createLog } from '../../src/platform/telemetry/log.ts'
import { useAuditLog } from '../support/audit-log.ts'
import { type MeasuredConnection, measureConnection } from '../support/buffers.ts'

const MANY = 20_000
const FEW = 10
/** Pages of 8 KiB in a round of so many entries: two tables and two indexes. Reading all takes more. */
const MOST_BUFFERS = 250

const audit = useAuditLog()
let connection: MeasuredConnection
beforeAll(async () => {
  connection = measureConnection(audit.database)
  for (const name of ['audit_entries', 'audit_checkpoints']) {
    await audit.database
      .sql`alter table ${audit.database.sql(name)} set (autovacuum_enabled = false)`
  }
})
afterAll(() => connection.close())

const insert = (rows: number) => audit.database.sql`
  insert into audit_entries (at, actor, operation, merchant_code, object_id, request_id, outcome)
  select now() - interval '11 minutes', 'bench', 'POST /v1/payments/{paymentId}/refunds', 'M-' || n % 5,
    gen_random_uuid()::text, gen_random_uuid()::text, 'done' from generate_series(1, ${rows}) as n`

it('a backlog is signed, and after it a round reads by key what is new, with plans made on empty tables', async () => {
  const ctx = { db: connection, encryption: audit.encryption, log: createLog('silent') }
  for (const rows of [0, 1]) {
    await insert(rows)
    await addCheckpoint(ctx)
  }
  await insert(MANY)
  const started = performance.now()
  while ((await addCheckpoint(ctx)) > 0);
  const perSecond = Math.round(MANY / ((performance.now() - started) / 1_000))
  console.log(`a backlog of ${MANY} audit entries: ${perSecond} a second`)

  for (const rows of [FEW, 0]) {
    await insert(rows)
    connection.takeTouched()
    await addCheckpoint(ctx)
    const touched = connection.takeTouched()
    const worst = touched.reduce((a, b) => (b.buffers > a.buffers ? b : a))
    const sum = touched.reduce((all, { buffers }) => all + buffers, 0)
    expect([sum < MOST_BUFFERS, sum, worst]).toEqual([true, sum, worst])
    console.log(`${rows} new entries: ${sum} pages`)
  }

  const verifying = performance.now()
  expect(await audit.verify()).toMatchObject({ verified: MANY + FEW + 1, count: 0 })
  const seconds = (performance.now() - verifying) / 1_000
  console.log(`verified at ${Math.round(MANY / seconds)} entries a second`)
})
