import postgres from 'postgres'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { createTestDatabase, type TestDatabase } from './support/database.ts'

let database: TestDatabase
beforeAll(async () => {
  database = await createTestDatabase()
  await database.sql`insert into merchant_accounts (merchant_code) values ('M')`
  await database.sql`insert into transactions (merchant_code, transaction_id) values ('M', 'T')`
  await database.sql.unsafe(payment({ payment_id: `'P'` }))
  await database.sql.unsafe(event({}))
  await database.sql.unsafe(key({}))
})
afterAll(() => database.drop())

type Columns = Record<string, string>

function insert(table: string, columns: Columns): string {
  return `insert into ${table} (${Object.keys(columns)}) values (${Object.values(columns)})`
}

const key = (more: Columns) =>
  insert('api_keys', {
    name: `'n'`,
    hash: `decode(repeat('00', 32), 'hex')`,
    scopes: `'{}'`,
    merchant_code: `'M'`,
    ...more,
  })
const event = (more: Columns) =>
  insert('ipn_events', {
    merchant_code: `'M'`,
    fingerprint: `'f'`,
    kind: `'payment'`,
    transaction_id: `'T'`,
    verdict: `'verified'`,
    body: `''`,
    content_type: `''`,
    address: `''`,
    headers: `'{}'`,
    deliveries: '1',
    ...more,
  })
const transaction = (more: Columns) =>
  insert('transactions', { merchant_code: `'M'`, transaction_id: `'T2'`, ...more })
const payment = (more: Columns) =>
  insert('payments', {
    merchant_code: `'M'`,
    payment_id: `'P2'`,
    transaction_id: `'T'`,
    status: `'SUCCESS'`,
    amount: '1',
    refunded_amount: '0',
    refunded_at_first: '0',
    payment_method: `'CC'`,
    as_of: 'now()',
    ...more,
  })
const call = (more: Columns) =>
  insert('gateway_calls', {
    merchant_code: `'M'`,
    transaction_id: `'T'`,
    command: `'QUERY_PT'`,
    body_sha256: `''`,
    sent_at: 'now()',
    duration_ms: '1',
    outcome: `'answered'`,
    ...more,
  })

/** What each constraint refuses, and nothing else about the row would. */
const REFUSED: [constraint: string, statement: string][] = [
  ['merchant_accounts_pkey', insert('merchant_accounts', { merchant_code: `'M'` })],
  ['api_keys_hash', key({ name: `'other'` })],
  ['api_keys_hash_is_sha256', key({ hash: `'short'` })],
  ['ipn_events_fingerprint', event({ body: `'other'` })],
  ['ipn_events_deliveries_positive', event({ fingerprint: `'g'`, deliveries: '0' })],
  ['ipn_events_kind_has_its_id', event({ fingerprint: `'g'`, transaction_id: 'null' })],
  ['ipn_events_kind_has_its_id', event({ fingerprint: `'g'`, kind: `'other'` })],
  [
    'ipn_events_kind_has_its_id',
    event({ fingerprint: `'g'`, kind: `'refund'`, transaction_id: 'null' }),
  ],
  [
    'ipn_events_kind_has_its_id',
    event({ fingerprint: `'g'`, kind: `'refund'`, request_id: `'R'`, transaction_id: `'T'` }),
  ],
  ['transactions_pkey', transaction({ transaction_id: `'T'` })],
  ['transactions_amounts_not_negative', transaction({ paid_amount: '-0.0001' })],
  ['transactions_amounts_not_negative', transaction({ refunded_amount: '-1' })],
  ['transactions_counters_in_order', transaction({ want: '1', claimed: '2' })],
  ['transactions_counters_in_order', transaction({ attempts: '-1' })],
  ['transactions_counters_in_order', transaction({ polls: '-1' })],
  ['transactions_counters_in_order', transaction({ ipn_count: '-1' })],
  ['transactions_leased_are_due', transaction({ lease_id: 'gen_random_uuid()' })],
  ['transactions_abandoned_rest', transaction({ abandoned_at: 'now()', due_at: 'now()' })],
  ['transactions_pending_is_open', transaction({ final: 'true' })],
  ['transactions_state_known', transaction({ state: `'PAID'` })],
  ['payments_pkey', payment({ payment_id: `'P'` })],
  ['payments_transaction', payment({ transaction_id: `'NOBODY'` })],
  ['payments_transaction', payment({ merchant_code: `'OTHER'` })],
  ['payments_amounts_not_negative', payment({ amount: '-1' })],
  ['payments_amounts_not_negative', payment({ refunded_amount: '-1' })],
  ['payments_amounts_exact', payment({ amount: '0.00001' })],
  ['payments_amounts_exact', payment({ amount: '1000000000000000000' })],
  ['payments_amounts_exact', payment({ refunded_amount: '0.00001' })],
  ['payments_amounts_exact', payment({ refunded_amount: '1000000000000000000' })],
  ['gateway_calls_outcome_known', call({ outcome: `'fine'` })],
]

it.each(REFUSED)('%s refuses: %s', async (constraint, statement) => {
  const error = await database.sql.unsafe(statement).catch((refusal: unknown) => refusal)
  expect(error).toBeInstanceOf(postgres.PostgresError)
  expect(error).toMatchObject({ constraint_name: constraint })
})

it('no constraint of the schema is left out above, but for keys of generated numbers', async () => {
  const rows = await database.sql<{ name: string }[]>`
    select conname as name from pg_constraint
    where connamespace = 'public'::regnamespace and contype in ('c', 'f', 'p', 'u')`
  const generated = ['api_keys_pkey', 'changes_pkey', 'gateway_calls_pkey', 'ipn_events_pkey']
  const tested = new Set([...REFUSED.map(([name]) => name), ...generated])
  expect(rows.map(({ name }) => name).sort()).toEqual([...tested].sort())
})
