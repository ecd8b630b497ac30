import type { Guard } from './guard.ts'

/** The first migration, in which every constraint has a row but the primary keys that a foreign key refers to. */
const FILE = 'migrations/0000_initial.sql'

/** Every CHECK is made true. */
const CHECKS = [
  'actors_hash_is_sha256',
  'actors_have_merchants',
  'actors_key_whole',
  'actors_person_folded',
  'actors_person_whole',
  'actors_rate_positive',
  'audit_checkpoints_has_entries',
  'audit_checkpoints_mac_is_sha256',
  'discrepancies_times_positive',
  'event_removals_one_row',
  'installation_one_row',
  'installation_stopped',
  'external_refunds_amount_positive',
  'external_refunds_has_a_source',
  'gateway_calls_outcome_known',
  'ipn_events_deliveries_positive',
  'ipn_events_first_is_documented',
  'ipn_events_kind_has_its_id',
  'ipn_events_readings_bounded',
  'payments_amounts_exact',
  'payments_amounts_not_negative',
  'refunds_amount_positive',
  'refunds_approved_before_sending',
  'refunds_awaiting_undecided',
  'refunds_decided_by_another',
  'refunds_decision_whole',
  'refunds_ended_or_due',
  'refunds_failed_says_why',
  'refunds_matched_succeeded',
  'refunds_on_behalf_folded',
  'refunds_return_seen_in_order',
  'refunds_returned_by_a_person',
  'refunds_sent_has_attempt',
  'refunds_status_known',
  'sessions_link_is_sha256',
  'sessions_opened_whole',
  'sessions_token_is_sha256',
  'transactions_abandoned_rest',
  'transactions_amounts_not_negative',
  'transactions_counters_in_order',
  'transactions_leased_are_due',
  'transactions_pending_is_open',
  'transactions_state_known',
  'webhook_attempts_counts_from_one',
  'webhook_endpoints_disabled_says_why',
  'webhook_endpoints_previous_secret_ends',
  'webhook_retries_attempts_not_negative',
]

/** Every key is given up. */
const KEYS: readonly [name: string, definition: string][] = [
  ['actors_hash', 'UNIQUE("hash")'],
  ['actors_replaced_once', 'UNIQUE("replaces")'],
  ['audit_checkpoints_pkey', 'PRIMARY KEY("up_to_id")'],
  ['data_keys_pkey', 'PRIMARY KEY("purpose","id")'],
  [
    'discrepancies_once',
    'UNIQUE NULLS NOT DISTINCT("merchant_code","transaction_id","kind","payment_id","refund_id","ours","theirs")',
  ],
  ['external_refunds_id', 'UNIQUE("merchant_code","id")'],
  ['external_refunds_pkey', 'PRIMARY KEY("merchant_code","request_id","payment_id","amount")'],
  ['ipn_events_one_text', 'UNIQUE("merchant_code","text_hash","reading")'],
  ['refund_reviews_pkey', 'PRIMARY KEY("merchant_code","refund_id")'],
  ['refunds_idempotency_key', 'UNIQUE("merchant_code","idempotency_key")'],
  ['refunds_pkey', 'PRIMARY KEY("merchant_code","refund_id")'],
  ['sessions_link', 'UNIQUE("link_hash")'],
  ['sessions_token', 'UNIQUE("token_hash")'],
  ['webhook_attempts_pkey', 'PRIMARY KEY("merchant_code","endpoint_id","id")'],
  ['webhook_retries_pkey', 'PRIMARY KEY("event_id","endpoint_id")'],
]

/** Every reference is given up. */
const REFERENCES: readonly [name: string, statement: string][] = [
  [
    'payments_transaction',
    'ALTER TABLE "payments" ADD CONSTRAINT "payments_transaction" FOREIGN KEY ("merchant_code","transaction_id") REFERENCES "transactions"("merchant_code","transaction_id") ON DELETE no action ON UPDATE no action;',
  ],
  [
    'refunds_payment',
    'ALTER TABLE "refunds" ADD CONSTRAINT "refunds_payment" FOREIGN KEY ("merchant_code","payment_id") REFERENCES "payments"("merchant_code","payment_id") ON DELETE no action ON UPDATE no action;',
  ],
  [
    'webhook_retries_event',
    'ALTER TABLE "webhook_retries" ADD CONSTRAINT "webhook_retries_event" FOREIGN KEY ("event_id") REFERENCES "events"("id") ON DELETE cascade ON UPDATE no action;',
  ],
  [
    'webhook_retries_endpoint',
    'ALTER TABLE "webhook_retries" ADD CONSTRAINT "webhook_retries_endpoint" FOREIGN KEY ("endpoint_id") REFERENCES "webhook_endpoints"("id") ON DELETE cascade ON UPDATE no action;',
  ],
]

function guard(name: string, text: string, mutation: string): Guard {
  return {
    ...{ file: FILE, text, mutation },
    test: 'test/api/db/constraints.test.ts',
    claim: `${name} refuses what violates it`,
    control: 'a refund can be kept as an approved one',
  }
}

export const CONSTRAINTS: readonly Guard[] = [
  ...CHECKS.map((name) => guard(name, `"${name}" CHECK (`, `"${name}" CHECK (true or `)),
  ...KEYS.map(([name, key]) => guard(name, `"${name}" ${key}`, `"${name}" CHECK (true)`)),
  ...REFERENCES.map(([name, statement]) => guard(name, statement, 'SELECT 1;')),
]
