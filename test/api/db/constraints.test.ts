import postgres from 'postgres'
import { beforeAll, expect, it } from 'vitest'
import { useOwnDatabase } from '../../support/use-started.ts'

const database = useOwnDatabase()
beforeAll(async () => {
  await database.sql`insert into merchant_accounts (merchant_code) values ('M')`
  await database.sql`insert into transactions (merchant_code, transaction_id) values ('M', 'T')`
  const first = [
    ...[payment({ payment_id: `'P'` }), event({})],
    ...[key({}), key({ hash: THIRD_HASH, replaces: ZERO })],
    ...[refund({}), discrepancy({}), review, external({}), checkpoint({}), endpoint({ id: ZERO })],
    ...[insert('event_removals', { removed_up_to: '0' }), insert('installation', SERVER)],
    ...[insert('processes', PROCESS), insert('minute_figures', MINUTE), feedEvent, retry({})],
    ...[attempt({}), dataKey, session({})],
  ]
  for (const statement of first) await database.sql.unsafe(statement)
})

const OTHER_HASH = `decode(repeat('11', 32), 'hex')`
const review = `insert into refund_reviews (merchant_code, refund_id) values ('M', '00000000-0000-4000-8000-000000000000')`
const THIRD_HASH = `decode(repeat('22', 32), 'hex')`

type Columns = Record<string, string>

function insert(table: string, columns: Columns): string {
  return `insert into ${table} (${Object.keys(columns)}) values (${Object.values(columns)})`
}

const checkpoint = (more: Columns) =>
  insert('audit_checkpoints', {
    ...{ up_to_id: '1', '"rows"': '1', mac: THIRD_HASH, mac_key_id: `'k'` },
    ...more,
  })
const key = (more: Columns) =>
  insert('actors', {
    ...{ kind: `'key'`, name: `'n'`, folded_name: `'n'`, chain_id: ZERO, merchants: `'{M}'` },
    ...{ hash: `decode(repeat('00', 32), 'hex')` },
    ...more,
  })
const event = (more: Columns) =>
  insert('ipn_events', {
    ...{ merchant_code: `'M'`, text_hash: ZERO, kind: `'payment'`, transaction_id: `'T'` },
    ...{ verdict: `'verified'`, body: `''`, address: `''`, deliveries: '1' },
    ...more,
  })
const transaction = (more: Columns) =>
  insert('transactions', { merchant_code: `'M'`, transaction_id: `'T2'`, ...more })
const payment = (more: Columns) =>
  insert('payments', {
    ...{ merchant_code: `'M'`, payment_id: `'P2'`, transaction_id: `'T'` },
    ...{ status: `'SUCCESS'`, amount: '1', refunded_amount: '0', refunded_at_first: '0' },
    ...{ payment_method: `'CC'`, as_of: 'now()', first_as_of: 'now()' },
    ...more,
  })
const call = (more: Columns) =>
  insert('gateway_calls', {
    ...{ merchant_code: `'M'`, transaction_id: `'T'`, command: `'QUERY_PT'` },
    ...{ body_hmac: `''`, body_key_id: `'k'`, sent_at: 'now()', duration_ms: '1' },
    ...{ outcome: `'answered'` },
    ...more,
  })

const ZERO = `'00000000-0000-0000-0000-000000000000'`
const ONE = `'00000000-0000-0000-0000-000000000001'`
const refund = (more: Columns) =>
  insert('refunds', {
    ...{ merchant_code: `'M'`, refund_id: ZERO, transaction_id: `'T'`, payment_id: `'P'` },
    ...{ amount: '1', idempotency_key: `'k'`, fingerprint: `''` },
    ...{ fingerprint_key_id: `'k'`, requested_principal: `'key:1'`, requested_by: `'n'` },
    ...{ status: `'pending'`, due_at: 'now()' },
    ...more,
  })
/** An approved refund. */
const APPROVED = {
  needs_approval: 'true',
  decided_by: `'b'`,
  folded_decided_by: `'b'`,
  decided_principal: `'person:b:c'`,
  approved_at: 'now()',
  approved_fingerprint: `''`,
}
const onBehalfOf = (name: string) => ({
  on_behalf_of: `'${name}'`,
  folded_on_behalf_of: `'${name}'`,
})
/** Another refund, which violates only the constraint under test. */
const next = (more: Columns) => refund({ refund_id: ONE, idempotency_key: `'l'`, ...more })
const over = (status: string, more: Columns = {}) =>
  next({ status: `'${status}'`, attempts: '1', due_at: 'null', ...more })
const external = (more: Columns) =>
  insert('external_refunds', {
    ...{ merchant_code: `'M'`, request_id: `'R'`, payment_id: `'P'`, amount: '1' },
    ...{ ipn_event_id: '1' },
    ...more,
  })
const discrepancy = (more: Columns) =>
  insert('discrepancies', {
    ...{ merchant_code: `'M'`, transaction_id: `'T'`, kind: `'k'`, ours: `'a'` },
    ...{ theirs: `'b'` },
    ...more,
  })

const endpoint = (more: Columns) =>
  insert('webhook_endpoints', {
    ...{ id: ONE, merchant_code: `'M'`, key_chain_id: ZERO, api_version: `''`, url: `''` },
    types: `'{}'`,
    ...{ secret: `''`, cursor: '0' },
    ...more,
  })
const attempt = (more: Columns) =>
  insert('webhook_attempts', {
    ...{ merchant_code: `'M'`, endpoint_id: ZERO, id: '1', event_id: '1', type: `''` },
    ...{ transaction_id: `'T'`, attempt: '1', sent_at: 'now()', duration_ms: '1' },
    ...more,
  })
const feedEvent = insert('events', {
  ...{ id: '1', merchant_code: `'M'`, transaction_id: `'T'`, type: `''` },
  ...{ data: `'{}'`, at: 'now()' },
})
const retry = (more: Columns) =>
  insert('webhook_retries', {
    ...{ endpoint_id: ZERO, event_id: '1', merchant_code: `'M'`, transaction_id: `'T'` },
    ...more,
  })

/** Rows that violate one constraint each, and no other. */
const dataKey = insert('data_keys', { purpose: `'seal'`, id: `'K'`, wrapped: `''` })

const person = (more: Columns) =>
  insert('actors', {
    ...{ id: ONE, kind: `'person'`, chain_id: ONE, merchants: `'{M}'`, roles: `'{viewer}'` },
    ...{ name: `'n'`, folded_name: `'n'`, person: `'n'`, folded_person: `'n'` },
    ...more,
  })
const session = (more: Columns) =>
  insert('sessions', {
    ...{ person_id: ZERO, link_hash: THIRD_HASH, link_until: 'now()', token_hash: THIRD_HASH },
    ...{ signed_in_at: 'now()', last_used_at: 'now()', expires_at: 'now()' },
    ...{ address: `''`, user_agent: `''` },
    ...more,
  })

const PROCESS = { id: ZERO, role: `'all'`, version: `'1.0.0'` }
const MINUTE = {
  merchant_code: `'M'`,
  at: `'2026-01-01'`,
  lag_ms: '0',
  ipn_event_id: '0',
  gateway_call_id: '0',
}
const SERVER = { system_identifier: `'1'`, timeline: '1', has_standby: 'false' }

const REFUSED: [constraint: string, statement: string][] = [
  ['audit_checkpoints_pkey', checkpoint({})],
  ['audit_checkpoints_has_entries', checkpoint({ up_to_id: '2', '"rows"': '0' })],
  ['audit_checkpoints_mac_is_sha256', checkpoint({ up_to_id: '2', mac: `''` })],
  ['event_removals_pkey', insert('event_removals', { removed_up_to: '1' })],
  ['event_removals_one_row', insert('event_removals', { '"only"': 'false' })],
  ['installation_pkey', insert('installation', SERVER)],
  ['installation_one_row', insert('installation', { ...SERVER, '"only"': 'false' })],
  ['installation_stopped', `update installation set stopped_at = now()`],
  ['processes_pkey', insert('processes', PROCESS)],
  ['processes_role_known', insert('processes', { ...PROCESS, id: ONE, role: `'cli'` })],
  ['webhook_endpoints_pkey', endpoint({ id: ZERO })],
  ['webhook_endpoints_disabled_says_why', endpoint({ disabled_at: 'now()' })],
  ['webhook_endpoints_disabled_says_why', endpoint({ disabled_reason: `'gone'` })],
  ['webhook_endpoints_previous_secret_ends', endpoint({ id: ONE, previous_secret: `''` })],
  ['webhook_endpoints_previous_secret_ends', endpoint({ id: ONE, previous_secret_until: 'now()' })],
  ['webhook_attempts_pkey', attempt({})],
  ['webhook_attempts_counts_from_one', attempt({ id: '2', attempt: '0' })],
  ['webhook_retries_pkey', retry({})],
  ['webhook_retries_endpoint', retry({ endpoint_id: ONE })],
  ['webhook_retries_event', retry({ event_id: '2' })],
  ['webhook_retries_attempts_not_negative', retry({ attempts: '-1' })],
  ['data_keys_pkey', dataKey],
  [
    'migrations_created_at_key',
    'insert into migrations (hash, created_at) select hash, created_at from migrations',
  ],
  ['minute_figures_pkey', insert('minute_figures', MINUTE)],
  ['merchant_accounts_pkey', insert('merchant_accounts', { merchant_code: `'M'` })],
  ['sessions_link', session({ token_hash: OTHER_HASH })],
  ['sessions_link_is_sha256', session({ link_hash: `'short'`, token_hash: OTHER_HASH })],
  ['sessions_token', session({ link_hash: OTHER_HASH })],
  ['sessions_token_is_sha256', session({ link_hash: OTHER_HASH, token_hash: `'short'` })],
  ['sessions_opened_whole', session({ link_hash: OTHER_HASH, token_hash: 'null' })],
  ['sessions_opened_whole', session({ link_hash: OTHER_HASH, address: 'null' })],
  ['actors_hash', key({ name: `'other'` })],
  ['actors_hash_is_sha256', key({ hash: `'short'` })],
  ['actors_replaced_once', key({ hash: OTHER_HASH, replaces: ZERO })],
  ['actors_rate_positive', key({ hash: OTHER_HASH, rate_per_minute: '0' })],
  ['actors_have_merchants', key({ hash: OTHER_HASH, merchants: `'{}'` })],
  ['actors_person_folded', key({ hash: OTHER_HASH, person: `'p'` })],
  ['actors_key_whole', key({ hash: 'null' })],
  ['actors_key_whole', key({ hash: OTHER_HASH, roles: `'{admin}'` })],
  ['actors_person_whole', person({ hash: OTHER_HASH })],
  ['actors_person_whole', person({ scopes: `'{ops}'` })],
  ['actors_person_whole', person({ roles: `'{}'` })],
  ['actors_person_whole', person({ chain_id: ZERO })],
  ['actors_person_whole', person({ person: 'null', folded_person: 'null' })],
  ['actors_person_whole', person({ folded_person: `'other'` })],
  ['ipn_events_one_text', event({ body: `'other'` })],
  ['ipn_events_first_is_documented', event({ text_hash: ONE, documented: 'false' })],
  ['ipn_events_readings_bounded', event({ text_hash: ONE, reading: '3' })],
  ['ipn_events_readings_bounded', event({ text_hash: ONE, reading: '0' })],
  ['ipn_events_deliveries_positive', event({ text_hash: ONE, deliveries: '0' })],
  ['ipn_events_kind_has_its_id', event({ text_hash: ONE, transaction_id: 'null' })],
  ['ipn_events_kind_has_its_id', event({ text_hash: ONE, kind: `'other'` })],
  [
    'ipn_events_kind_has_its_id',
    event({ text_hash: ONE, kind: `'refund'`, transaction_id: 'null' }),
  ],
  [
    'ipn_events_kind_has_its_id',
    event({ text_hash: ONE, kind: `'refund'`, request_id: `'R'`, transaction_id: `'T'` }),
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
  ['refunds_pkey', next({ refund_id: ZERO })],
  ['refunds_idempotency_key', next({ idempotency_key: `'k'` })],
  ['refunds_payment', next({ payment_id: `'NOBODY'` })],
  ['refunds_payment', next({ merchant_code: `'OTHER'` })],
  ['refunds_amount_positive', next({ amount: '0' })],
  ['refunds_amount_positive', next({ amount: '-1' })],
  ['refunds_amount_positive', next({ amount: '0.00001' })],
  ['refunds_status_known', next({ status: `'PENDING'`, attempts: '1' })],
  ['refunds_ended_or_due', next({ due_at: 'null' })],
  ['refunds_ended_or_due', over('accepted')],
  ['refunds_ended_or_due', over('succeeded', { due_at: 'now()' })],
  ['refunds_ended_or_due', over('failed', { failure_source: `'service'`, due_at: 'now()' })],
  ['refunds_sent_has_attempt', next({ status: `'sending'` })],
  ['refunds_sent_has_attempt', next({ status: `'accepted'` })],
  ['refunds_sent_has_attempt', next({ status: `'unknown'` })],
  ['refunds_matched_succeeded', next({ matched: 'true' })],
  ['refunds_matched_succeeded', over('needs_review', { matched: 'true' })],
  ['refunds_returned_by_a_person', over('returned')],
  ['refunds_return_seen_in_order', over('succeeded', { return_sightings: '1' })],
  ['refunds_return_seen_in_order', over('returned', { resolution: `'{}'`, return_sightings: '3' })],
  ['refunds_failed_says_why', over('failed')],
  [
    'refunds_ended_or_due',
    over('awaiting_approval', { attempts: '0', needs_approval: 'true', due_at: 'now()' }),
  ],
  ['refunds_awaiting_undecided', over('awaiting_approval', { attempts: '0' })],
  ['refunds_awaiting_undecided', over('awaiting_approval', { ...APPROVED, attempts: '0' })],
  ['refunds_approved_before_sending', next({ needs_approval: 'true' })],
  ['refunds_approved_before_sending', over('succeeded', { needs_approval: 'true' })],
  ['refunds_decided_by_another', next({ ...APPROVED, decided_principal: `'key:1'` })],
  ['refunds_decided_by_another', next({ ...APPROVED, ...onBehalfOf('b') })],
  ['refunds_decided_by_another', next({ ...APPROVED, ...onBehalfOf('person:b:c') })],
  ['refunds_decided_by_another', next({ ...APPROVED, ...onBehalfOf('b:c') })],
  ['refunds_on_behalf_folded', next({ on_behalf_of: `'B'` })],
  ['refunds_decision_whole', next({ ...APPROVED, folded_decided_by: 'null' })],
  ['refunds_decision_whole', next({ ...APPROVED, decided_by: 'null' })],
  ['refunds_decision_whole', next({ ...APPROVED, approved_at: 'null', needs_approval: 'false' })],
  ['refunds_decision_whole', next({ ...APPROVED, declined_at: 'now()' })],
  ['refunds_decision_whole', next({ ...APPROVED, approved_fingerprint: 'null' })],
  ['refund_reviews_pkey', review],
  ['external_refunds_pkey', external({ amount: '1.0' })],
  ['external_refunds_id', external({ request_id: `'S'`, id: '(select id from external_refunds)' })],
  ['external_refunds_has_a_source', external({ request_id: `'S'`, ipn_event_id: 'null' })],
  ['external_refunds_has_a_source', external({ request_id: `'S'`, source: `'person'` })],
  ['external_refunds_amount_positive', external({ request_id: `'S'`, amount: '0' })],
  ['discrepancies_once', discrepancy({})],
  ['discrepancies_times_positive', discrepancy({ ours: `'c'`, times: '0' })],
]

/** Runs a statement and rolls it back. @returns the error, `ROLL_BACK` if there was none */
async function tryOut(statement: string): Promise<unknown> {
  return await database.sql
    .begin(async (tx) => {
      await tx.unsafe(statement)
      throw ROLL_BACK
    })
    .catch((error: unknown) => error)
}

const ROLL_BACK = new Error('roll back')

it.each([...new Set(REFUSED.map(([name]) => name))])(
  '%s refuses what violates it',
  async (constraint) => {
    const statements = REFUSED.filter(([name]) => name === constraint)
    for (const [, statement] of statements) {
      const error = await tryOut(statement)
      expect(error, statement).toBeInstanceOf(postgres.PostgresError)
      expect(error, statement).toMatchObject({ constraint_name: constraint })
    }
  },
)

it.each([
  ['a success matched to growth', over('succeeded', { matched: 'true' })],
  ['a failure with a reason', over('failed', { failure_source: `'service'`, attempts: '0' })],
  [
    'one that awaits approval',
    over('awaiting_approval', { needs_approval: 'true', attempts: '0' }),
  ],
  ['an approved one', next({ ...APPROVED, ...onBehalfOf('c') })],
  ['a success notified before anything was sent', over('succeeded', { attempts: '0' })],
])('a refund can be kept as %s', async (_, statement) => {
  expect(await tryOut(statement)).toBe(ROLL_BACK)
})

it('every constraint of the schema is tested above, except keys of generated numbers', async () => {
  const rows = await database.sql<{ name: string }[]>`
    select conname as name from pg_constraint
    where connamespace = 'public'::regnamespace and contype in ('c', 'f', 'p', 'u')`
  const generated = [
    ...['actors', 'audit_entries', 'changes', 'discrepancies', 'event_outbox', 'events'],
    ...['gateway_calls', 'hold_changes', 'ipn_events', 'migrations', 'refund_attempts', 'sessions'],
  ].map((table) => `${table}_pkey`)
  const tested = new Set([...REFUSED.map(([name]) => name), ...generated])
  expect(rows.map(({ name }) => name).sort()).toEqual([...tested].sort())
})
