import { setTimeout as sleep } from 'node:timers/promises'
import { openDatabase } from '../../src/db/client.ts'
import { createDeleteExpired } from '../../src/maintenance/delete-expired.ts'
import { ACCOUNT } from './notifications.ts'
import { type Measure, percentile } from './report.ts'
import { describeLatencies } from './rounds.ts'
import type { Stage } from './stage.ts'

/** Of each table. */
const OLD = 500_000
const INTAKE = { kind: 'ipn' as const, connections: 64, rate: 500 }

/**
 * A million rows past their time removed by one process while notifications come in: rows a second, the
 * longest statement (each is a commit, so no lock is held for longer), and the acknowledgements meanwhile.
 * The removal goes by age from the first row on: the tables have to be empty before.
 */
export async function measureRemoval(stage: Stage): Promise<Measure[]> {
  const { database, load, web } = stage
  const size = 0
  await addOld(stage)
  const quiet = await load.run({ ...INTAKE, urls: [web.url], forMs: 6_000 })
  const { sql, close } = openDatabase(database.url, 2)
  const remove = createDeleteExpired({ sql, config: { RETENTION_DAYS: 400 } })
  let over = false
  const meanwhile: number[] = []
  const intake = (async () => {
    while (!over) {
      const { latencies } = await load.run({ ...INTAKE, urls: [web.url], forMs: 1_000 })
      meanwhile.push(...latencies)
    }
  })()
  await sleep(500)
  const rounds: number[] = []
  let removed = 0
  const started = performance.now()
  for (;;) {
    const began = performance.now()
    const gone = await remove()
    if (gone === 0) break
    removed += gone
    rounds.push(performance.now() - began)
  }
  const seconds = (performance.now() - started) / 1000
  over = true
  await intake
  await close()
  const halves = rounds.map((ms) => ms / 2)
  return [
    {
      name: 'removal of rows past their time (/s), 500 notifications/s coming in',
      size,
      result: removed / seconds,
      value: `${removed} rows in ${seconds.toFixed(1)} s`,
      baseline: '',
    },
    {
      name: 'one round of it, a statement of 1,000 rows for each of two tables, longest (ms)',
      size,
      result: Math.max(...rounds),
      value: `a statement ${describeLatencies(halves)}`,
      baseline: '',
    },
    {
      name: 'ack p99 while rows are removed (ms), 500 notifications/s',
      size,
      result: percentile(meanwhile, 99),
      value: describeLatencies(meanwhile),
      baseline: `without it ${describeLatencies(quiet.latencies)}`,
    },
  ]
}

/** As the service stores them, 500 days ago. */
async function addOld({ database: { sql } }: Stage): Promise<void> {
  await sql`
    insert into ipn_events (merchant_code, text_hash, kind, transaction_id, verdict, body, address, deliveries, first_received_at, last_received_at)
    select ${ACCOUNT.merchantCode}, gen_random_uuid(), 'payment', 'OLD-' || n, 'verified',
      repeat('x', 400), '127.0.0.1', 1, now() - interval '500 days',
      now() - interval '500 days'
    from generate_series(1, ${OLD}) as n`
  await sql`
    insert into gateway_calls (body_key_id, merchant_code, transaction_id, command, body_hmac, sent_at, duration_ms,
      outcome, http_status, code, message, answer)
    select 'k', ${ACCOUNT.merchantCode}, 'OLD-' || n, 'QUERY_PT', sha256(''), now() - interval '500 days', 20,
      'answered', 200, '0', 'Success', '[{"id":"P","status":"SUCCESS","amount":"20000000"}]'
    from generate_series(1, ${OLD}) as n`
  await sql.unsafe('vacuum analyze ipn_events, gateway_calls')
  await sql.unsafe('checkpoint')
}
