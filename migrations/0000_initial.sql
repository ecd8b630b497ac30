CREATE TABLE "actors" (
	"id" uuid PRIMARY KEY DEFAULT gen_random_uuid() NOT NULL,
	"kind" text NOT NULL,
	"name" text NOT NULL,
	"folded_name" text NOT NULL,
	"hash" "bytea",
	"scopes" text[] DEFAULT '{}' NOT NULL,
	"roles" text[] DEFAULT '{}' NOT NULL,
	"merchants" text[] NOT NULL,
	"refund_max" numeric,
	"refund_daily_max" numeric,
	"refund_max_by_currency" jsonb,
	"refund_daily_max_by_currency" jsonb,
	"rate_per_minute" integer,
	"networks" text[],
	"last_used_at" timestamp with time zone,
	"last_used_from" text,
	"replaces" uuid,
	"chain_id" uuid NOT NULL,
	"person" text,
	"folded_person" text,
	"principal" text GENERATED ALWAYS AS (coalesce('person:' || folded_person, 'key:' || chain_id::text)) STORED NOT NULL,
	"email" text,
	"folded_email" text,
	"language" text,
	"time_zone" text,
	"created_at" timestamp with time zone DEFAULT now() NOT NULL,
	"expires_at" timestamp with time zone,
	"ended_at" timestamp with time zone,
	CONSTRAINT "actors_hash" UNIQUE("hash"),
	CONSTRAINT "actors_replaced_once" UNIQUE("replaces"),
	CONSTRAINT "actors_hash_is_sha256" CHECK (length("hash") = 32),
	CONSTRAINT "actors_rate_positive" CHECK ("rate_per_minute" > 0),
	CONSTRAINT "actors_have_merchants" CHECK (cardinality("merchants") > 0),
	CONSTRAINT "actors_person_folded" CHECK (("person" is null) = ("folded_person" is null)),
	CONSTRAINT "actors_key_whole" CHECK ("kind" <> 'key' or ("hash" is not null and cardinality("roles") = 0)),
	CONSTRAINT "actors_person_whole" CHECK ("kind" <> 'person' or ("hash" is null and cardinality("scopes") = 0 and cardinality("roles") > 0 and "chain_id" = "id" and "folded_person" is not null and "folded_person" = "folded_name"))
);
--> statement-breakpoint
CREATE TABLE "audit_checkpoints" (
	"up_to_id" bigint NOT NULL,
	"rows" bigint NOT NULL,
	"mac" "bytea" NOT NULL,
	"mac_key_id" text NOT NULL,
	"start_mac" "bytea",
	CONSTRAINT "audit_checkpoints_pkey" PRIMARY KEY("up_to_id"),
	CONSTRAINT "audit_checkpoints_has_entries" CHECK ("rows" > 0),
	CONSTRAINT "audit_checkpoints_mac_is_sha256" CHECK (length("mac") = 32)
);
--> statement-breakpoint
CREATE TABLE "audit_entries" (
	"id" bigserial PRIMARY KEY NOT NULL,
	"at" timestamp with time zone DEFAULT now() NOT NULL,
	"key_id" uuid,
	"actor" text NOT NULL,
	"operation" text NOT NULL,
	"merchant_code" text,
	"object_id" text,
	"request_id" text,
	"outcome" text NOT NULL
);
--> statement-breakpoint
CREATE TABLE "changes" (
	"id" bigserial NOT NULL,
	"merchant_code" text NOT NULL,
	"transaction_id" text NOT NULL,
	"payment_id" text,
	"refund_id" uuid,
	"field" text NOT NULL,
	"before" text,
	"after" text,
	"call_id" bigint,
	"ipn_event_id" bigint,
	"cause" text NOT NULL,
	"at" timestamp with time zone DEFAULT now() NOT NULL,
	CONSTRAINT "changes_pkey" PRIMARY KEY("merchant_code","id")
);
--> statement-breakpoint
CREATE TABLE "data_keys" (
	"purpose" text NOT NULL,
	"id" text NOT NULL,
	"wrapped" "bytea" NOT NULL,
	"created_at" timestamp with time zone DEFAULT now() NOT NULL,
	CONSTRAINT "data_keys_pkey" PRIMARY KEY("purpose","id")
);
--> statement-breakpoint
CREATE TABLE "discrepancies" (
	"id" bigserial NOT NULL,
	"merchant_code" text NOT NULL,
	"transaction_id" text NOT NULL,
	"payment_id" text,
	"refund_id" uuid,
	"kind" text NOT NULL,
	"ours" text NOT NULL,
	"theirs" text NOT NULL,
	"at" timestamp with time zone DEFAULT now() NOT NULL,
	"times" integer DEFAULT 1 NOT NULL,
	"last_seen_at" timestamp with time zone,
	"resolved_at" timestamp with time zone,
	"resolved_by" text,
	"resolution" text,
	"over_at" timestamp with time zone,
	"assignee" text,
	"notes" jsonb DEFAULT '[]'::jsonb NOT NULL,
	CONSTRAINT "discrepancies_pkey" PRIMARY KEY("merchant_code","id"),
	CONSTRAINT "discrepancies_once" UNIQUE NULLS NOT DISTINCT("merchant_code","transaction_id","kind","payment_id","refund_id","ours","theirs"),
	CONSTRAINT "discrepancies_times_positive" CHECK ("times" > 0)
);
--> statement-breakpoint
CREATE TABLE "event_outbox" (
	"id" bigserial PRIMARY KEY NOT NULL,
	"merchant_code" text NOT NULL,
	"transaction_id" text NOT NULL,
	"type" text NOT NULL,
	"data" json NOT NULL,
	"at" timestamp with time zone DEFAULT now() NOT NULL
);
--> statement-breakpoint
CREATE TABLE "event_removals" (
	"only" boolean PRIMARY KEY DEFAULT true NOT NULL,
	"removed_up_to" bigint DEFAULT 0 NOT NULL,
	CONSTRAINT "event_removals_one_row" CHECK ("only")
);
--> statement-breakpoint
CREATE TABLE "events" (
	"id" bigserial PRIMARY KEY NOT NULL,
	"merchant_code" text NOT NULL,
	"transaction_id" text NOT NULL,
	"type" text NOT NULL,
	"data" json NOT NULL,
	"at" timestamp with time zone NOT NULL
);
--> statement-breakpoint
CREATE TABLE "external_refunds" (
	"id" uuid DEFAULT gen_random_uuid() NOT NULL,
	"merchant_code" text NOT NULL,
	"request_id" text NOT NULL,
	"payment_id" text NOT NULL,
	"amount" numeric NOT NULL,
	"source" text DEFAULT 'notification' NOT NULL,
	"matched" boolean DEFAULT false NOT NULL,
	"outcome" text,
	"resolution" jsonb,
	"ipn_event_id" bigint,
	"notified_at" timestamp with time zone,
	"failure_notified_at" timestamp with time zone,
	"first_seen_at" timestamp with time zone DEFAULT now() NOT NULL,
	CONSTRAINT "external_refunds_pkey" PRIMARY KEY("merchant_code","request_id","payment_id","amount"),
	CONSTRAINT "external_refunds_id" UNIQUE("merchant_code","id"),
	CONSTRAINT "external_refunds_amount_positive" CHECK ("amount" > 0),
	CONSTRAINT "external_refunds_has_a_source" CHECK (case "source" when 'notification' then "ipn_event_id" is not null else "resolution" is not null end)
);
--> statement-breakpoint
CREATE TABLE "gateway_calls" (
	"id" bigserial PRIMARY KEY NOT NULL,
	"merchant_code" text NOT NULL,
	"transaction_id" text NOT NULL,
	"command" text NOT NULL,
	"body_hmac" "bytea" NOT NULL,
	"body_key_id" text NOT NULL,
	"sent_at" timestamp with time zone NOT NULL,
	"duration_ms" integer NOT NULL,
	"outcome" text NOT NULL,
	"http_status" integer,
	"code" text,
	"message" text,
	"answer" jsonb,
	"received" text,
	CONSTRAINT "gateway_calls_outcome_known" CHECK ("outcome" in ('answered', 'rejected', 'unavailable', 'unknown'))
);
--> statement-breakpoint
CREATE TABLE "hold_changes" (
	"id" bigint GENERATED ALWAYS AS IDENTITY (sequence name "hold_changes_id_seq" INCREMENT BY 1 MINVALUE 1 MAXVALUE 9223372036854775807 START WITH 1 CACHE 1),
	"merchant_code" text NOT NULL,
	"target" text NOT NULL,
	"target_id" text NOT NULL,
	"held" boolean NOT NULL,
	"reason" text NOT NULL,
	"actor" text NOT NULL,
	"principal" text,
	"at" timestamp with time zone DEFAULT now() NOT NULL,
	CONSTRAINT "hold_changes_pkey" PRIMARY KEY("merchant_code","id")
);
--> statement-breakpoint
CREATE TABLE "installation" (
	"only" boolean PRIMARY KEY DEFAULT true NOT NULL,
	"epoch" integer DEFAULT 0 NOT NULL,
	"system_identifier" text NOT NULL,
	"timeline" bigint NOT NULL,
	"has_standby" boolean NOT NULL,
	"seen_at" timestamp with time zone DEFAULT now() NOT NULL,
	"stopped_at" timestamp with time zone,
	"stopped_because" text,
	"restored_at" timestamp with time zone,
	CONSTRAINT "installation_one_row" CHECK ("only"),
	CONSTRAINT "installation_stopped" CHECK (("stopped_at" is null) = ("stopped_because" is null))
);
--> statement-breakpoint
CREATE TABLE "ipn_events" (
	"id" bigserial PRIMARY KEY NOT NULL,
	"merchant_code" text NOT NULL,
	"text_hash" uuid NOT NULL,
	"reading" smallint DEFAULT 1 NOT NULL,
	"documented" boolean DEFAULT true NOT NULL,
	"kind" text NOT NULL,
	"transaction_id" text,
	"payment_id" text,
	"request_id" text,
	"amount" numeric,
	"code" text,
	"currency" text,
	"order_id" text,
	"merchant_txn_id" text,
	"handled_at" timestamp with time zone,
	"verdict" text NOT NULL,
	"body" text NOT NULL,
	"address" text NOT NULL,
	"deliveries" integer NOT NULL,
	"added" integer DEFAULT 1 NOT NULL,
	"first_received_at" timestamp with time zone DEFAULT now() NOT NULL,
	"last_received_at" timestamp with time zone DEFAULT now() NOT NULL,
	CONSTRAINT "ipn_events_one_text" UNIQUE("merchant_code","text_hash","reading"),
	CONSTRAINT "ipn_events_deliveries_positive" CHECK ("deliveries" > 0),
	CONSTRAINT "ipn_events_first_is_documented" CHECK ("reading" > 1 or "documented"),
	CONSTRAINT "ipn_events_readings_bounded" CHECK ("reading" in (1, 2) or ("reading" in (3, 4) and "kind" = 'refund')),
	CONSTRAINT "ipn_events_kind_has_its_id" CHECK (case "kind" when 'payment' then "transaction_id" is not null when 'refund' then "request_id" is not null and "transaction_id" is null else false end)
);
--> statement-breakpoint
CREATE TABLE "merchant_accounts" (
	"merchant_code" text PRIMARY KEY NOT NULL,
	"first_seen_at" timestamp with time zone DEFAULT now() NOT NULL,
	"paid_until" timestamp with time zone DEFAULT now() NOT NULL,
	"hold" jsonb,
	"refund_reasons" text[] DEFAULT '{}' NOT NULL
);
--> statement-breakpoint
CREATE TABLE "minute_figures" (
	"merchant_code" text NOT NULL,
	"at" timestamp with time zone NOT NULL,
	"notifications" integer DEFAULT 0 NOT NULL,
	"answered" integer DEFAULT 0 NOT NULL,
	"unanswered" integer DEFAULT 0 NOT NULL,
	"lag_ms" bigint NOT NULL,
	"refunds_open" integer DEFAULT 0 NOT NULL,
	"refunds_to_decide" integer DEFAULT 0 NOT NULL,
	"ipn_event_id" bigint NOT NULL,
	"gateway_call_id" bigint NOT NULL,
	CONSTRAINT "minute_figures_pkey" PRIMARY KEY("merchant_code","at")
);
--> statement-breakpoint
CREATE TABLE "payments" (
	"merchant_code" text NOT NULL,
	"payment_id" text NOT NULL,
	"transaction_id" text NOT NULL,
	"status" text NOT NULL,
	"amount" numeric NOT NULL,
	"refunded_amount" numeric NOT NULL,
	"refunded_at_first" numeric NOT NULL,
	"first_as_of" timestamp with time zone NOT NULL,
	"unlisted_since" timestamp with time zone,
	"payment_method" text NOT NULL,
	"counted_status" text,
	"counted_amount" numeric,
	"amount_changed_at" timestamp with time zone,
	"counted_refunded" numeric,
	"refunded_fell_at" timestamp with time zone,
	"expected_fall" numeric,
	"missing" boolean DEFAULT false NOT NULL,
	"unreadable" boolean DEFAULT false NOT NULL,
	"hold" jsonb,
	"as_of" timestamp with time zone NOT NULL,
	"first_seen_at" timestamp with time zone DEFAULT now() NOT NULL,
	"updated_at" timestamp with time zone DEFAULT now() NOT NULL,
	CONSTRAINT "payments_pkey" PRIMARY KEY("merchant_code","payment_id"),
	CONSTRAINT "payments_amounts_not_negative" CHECK ("amount" >= 0 and "refunded_amount" >= 0),
	CONSTRAINT "payments_amounts_exact" CHECK (scale("amount") <= 4 and scale("refunded_amount") <= 4 and "amount" < 1e18 and "refunded_amount" < 1e18)
);
--> statement-breakpoint
CREATE TABLE "processes" (
	"id" uuid PRIMARY KEY NOT NULL,
	"role" text NOT NULL,
	"version" text NOT NULL,
	"commit" text,
	"started_at" timestamp with time zone DEFAULT now() NOT NULL,
	"seen_at" timestamp with time zone DEFAULT now() NOT NULL,
	"writing_since" timestamp with time zone DEFAULT now() NOT NULL,
	CONSTRAINT "processes_role_known" CHECK ("role" in ('all', 'web', 'worker'))
);
--> statement-breakpoint
CREATE TABLE "refund_attempts" (
	"id" bigserial NOT NULL,
	"merchant_code" text NOT NULL,
	"refund_id" uuid NOT NULL,
	"body_hmac" "bytea" NOT NULL,
	"body_key_id" text NOT NULL,
	"snapshot_call_id" bigint NOT NULL,
	"recorded_at" timestamp with time zone NOT NULL,
	"outcome" text,
	"http_status" integer,
	"code" text,
	"message" text,
	"duration_ms" integer,
	"received" text,
	CONSTRAINT "refund_attempts_pkey" PRIMARY KEY("merchant_code","id")
);
--> statement-breakpoint
CREATE TABLE "refund_reviews" (
	"merchant_code" text NOT NULL,
	"refund_id" uuid NOT NULL,
	"assignee" text,
	"notes" jsonb DEFAULT '[]'::jsonb NOT NULL,
	CONSTRAINT "refund_reviews_pkey" PRIMARY KEY("merchant_code","refund_id")
);
--> statement-breakpoint
CREATE TABLE "refunds" (
	"merchant_code" text NOT NULL,
	"refund_id" uuid NOT NULL,
	"transaction_id" text NOT NULL,
	"payment_id" text NOT NULL,
	"amount" numeric NOT NULL,
	"reason" text,
	"receiver" "bytea",
	"receiver_shown" "bytea",
	"forget_receiver_at" timestamp with time zone,
	"surplus" boolean DEFAULT false NOT NULL,
	"idempotency_key" text NOT NULL,
	"fingerprint" "bytea" NOT NULL,
	"fingerprint_key_id" text NOT NULL,
	"requested_by" text NOT NULL,
	"requested_principal" text NOT NULL,
	"cap_key_id" uuid,
	"cap_day" date,
	"cap_currency" text,
	"on_behalf_of" text,
	"folded_on_behalf_of" text,
	"metadata" jsonb DEFAULT '{}'::jsonb NOT NULL,
	"needs_approval" boolean DEFAULT false NOT NULL,
	"decided_by" text,
	"folded_decided_by" text,
	"decided_principal" text,
	"decided_reason" text,
	"declined_at" timestamp with time zone,
	"approved_at" timestamp with time zone,
	"approved_fingerprint" "bytea",
	"approved_fingerprint_key_id" text,
	"self_decided" boolean DEFAULT false NOT NULL,
	"status" text NOT NULL,
	"attempts" integer DEFAULT 0 NOT NULL,
	"first_sent_at" timestamp with time zone,
	"last_sent_at" timestamp with time zone,
	"unanswered" boolean DEFAULT false NOT NULL,
	"refunded_before" numeric,
	"refused_code" text,
	"refused_at" timestamp with time zone,
	"failure_code" text,
	"failure_notified_at" timestamp with time zone,
	"gateway_refund_id" text,
	"fee" numeric,
	"notified_reference" text,
	"failure_words" text,
	"no_growth_since" timestamp with time zone,
	"inferred" boolean DEFAULT false NOT NULL,
	"matched" boolean DEFAULT false NOT NULL,
	"success_notified_at" timestamp with time zone,
	"in_first_sight" boolean DEFAULT false NOT NULL,
	"review" text,
	"failure_source" text,
	"failure_reason" text,
	"failure_message" text,
	"hold" jsonb,
	"resolution" jsonb,
	"resolved_principal" text,
	"resolved_at" timestamp with time zone,
	"decided_growth" numeric,
	"return_sightings" integer DEFAULT 0 NOT NULL,
	"return_seen_at" timestamp with time zone,
	"due_at" timestamp with time zone,
	"polls" integer DEFAULT 0 NOT NULL,
	"requested_at" timestamp with time zone DEFAULT now() NOT NULL,
	"updated_at" timestamp with time zone DEFAULT now() NOT NULL,
	CONSTRAINT "refunds_pkey" PRIMARY KEY("merchant_code","refund_id"),
	CONSTRAINT "refunds_idempotency_key" UNIQUE("merchant_code","idempotency_key"),
	CONSTRAINT "refunds_amount_positive" CHECK ("amount" > 0 and scale("amount") <= 4),
	CONSTRAINT "refunds_status_known" CHECK ("status" in ('awaiting_approval', 'pending', 'sending', 'accepted', 'unknown', 'succeeded', 'failed', 'needs_review', 'returned')),
	CONSTRAINT "refunds_ended_or_due" CHECK ("status" = 'needs_review' or ("status" in ('awaiting_approval', 'succeeded', 'failed', 'returned')) = ("due_at" is null)),
	CONSTRAINT "refunds_sent_has_attempt" CHECK ("status" in ('awaiting_approval', 'pending', 'succeeded', 'failed', 'needs_review', 'returned') or "attempts" > 0),
	CONSTRAINT "refunds_matched_succeeded" CHECK (not "matched" or "status" in ('succeeded', 'returned')),
	CONSTRAINT "refunds_return_seen_in_order" CHECK ("return_sightings" between 0 and 2 and ("return_sightings" = 0 or "status" = 'returned')),
	CONSTRAINT "refunds_returned_by_a_person" CHECK ("status" <> 'returned' or "resolution" is not null),
	CONSTRAINT "refunds_failed_says_why" CHECK ("status" <> 'failed' or "failure_source" is not null),
	CONSTRAINT "refunds_awaiting_undecided" CHECK ("status" <> 'awaiting_approval' or ("needs_approval" and "decided_principal" is null)),
	CONSTRAINT "refunds_approved_before_sending" CHECK (not "needs_approval" or "approved_at" is not null or ("attempts" = 0 and "status" in ('awaiting_approval', 'succeeded', 'failed', 'needs_review', 'returned'))),
	CONSTRAINT "refunds_on_behalf_folded" CHECK (("on_behalf_of" is null) = ("folded_on_behalf_of" is null)),
	CONSTRAINT "refunds_decided_by_another" CHECK ("decided_principal" is null or ("decided_principal" <> "requested_principal" and ("folded_on_behalf_of" is null or "folded_on_behalf_of" not in ("folded_decided_by", "decided_principal", regexp_replace("decided_principal", '^[a-z]+:', '')))) is true),
	CONSTRAINT "refunds_decision_whole" CHECK (("decided_principal" is null) = ("decided_by" is null) and ("decided_by" is null) = ("folded_decided_by" is null) and ("decided_principal" is not null) = ("approved_at" is not null or "declined_at" is not null) and ("approved_at" is null or "declined_at" is null) and ("approved_at" is null) = ("approved_fingerprint" is null))
);
--> statement-breakpoint
CREATE TABLE "sessions" (
	"id" uuid PRIMARY KEY DEFAULT gen_random_uuid() NOT NULL,
	"person_id" uuid NOT NULL,
	"created_at" timestamp with time zone DEFAULT now() NOT NULL,
	"link_hash" "bytea" NOT NULL,
	"link_until" timestamp with time zone NOT NULL,
	"token_hash" "bytea",
	"signed_in_at" timestamp with time zone,
	"last_used_at" timestamp with time zone,
	"expires_at" timestamp with time zone,
	"address" text,
	"user_agent" text,
	"ended_at" timestamp with time zone,
	CONSTRAINT "sessions_link" UNIQUE("link_hash"),
	CONSTRAINT "sessions_token" UNIQUE("token_hash"),
	CONSTRAINT "sessions_link_is_sha256" CHECK (length("link_hash") = 32),
	CONSTRAINT "sessions_token_is_sha256" CHECK (length("token_hash") = 32),
	CONSTRAINT "sessions_opened_whole" CHECK (num_nonnulls("token_hash", "signed_in_at", "last_used_at", "expires_at", "address", "user_agent") in (0, 6))
);
--> statement-breakpoint
CREATE TABLE "transactions" (
	"merchant_code" text NOT NULL,
	"transaction_id" text NOT NULL,
	"order_id" text,
	"merchant_txn_id" text,
	"currency" text,
	"expected_amount" numeric,
	"order_verified" boolean DEFAULT false NOT NULL,
	"state" text DEFAULT 'pending' NOT NULL,
	"final" boolean DEFAULT false NOT NULL,
	"paid_amount" numeric DEFAULT '0' NOT NULL,
	"refunded_amount" numeric DEFAULT '0' NOT NULL,
	"duplicate_payment" boolean DEFAULT false NOT NULL,
	"same_order" text[] DEFAULT '{}' NOT NULL,
	"order_check_due" boolean DEFAULT false NOT NULL,
	"unapplied_entries" boolean DEFAULT false NOT NULL,
	"version" bigint DEFAULT 1 NOT NULL,
	"due_at" timestamp with time zone,
	"lease_id" uuid,
	"lease_owner" uuid,
	"want" bigint DEFAULT 1 NOT NULL,
	"claimed" bigint DEFAULT 0 NOT NULL,
	"attempts" integer DEFAULT 0 NOT NULL,
	"polls" integer DEFAULT 0 NOT NULL,
	"last_error" text,
	"abandoned_at" timestamp with time zone,
	"first_paid_at" timestamp with time zone,
	"asked_for_at" timestamp with time zone DEFAULT now() NOT NULL,
	"queried_at" timestamp with time zone,
	"gap_ms" integer DEFAULT 0 NOT NULL,
	"as_of" timestamp with time zone,
	"reconcile_at" timestamp with time zone,
	"ipn_count" integer DEFAULT 0 NOT NULL,
	"unconfirmed" boolean DEFAULT false NOT NULL,
	"asked_by" uuid,
	"first_seen_at" timestamp with time zone DEFAULT now() NOT NULL,
	"updated_at" timestamp with time zone DEFAULT now() NOT NULL,
	CONSTRAINT "transactions_pkey" PRIMARY KEY("merchant_code","transaction_id"),
	CONSTRAINT "transactions_amounts_not_negative" CHECK ("paid_amount" >= 0 and "refunded_amount" >= 0),
	CONSTRAINT "transactions_counters_in_order" CHECK ("claimed" <= "want" and "attempts" >= 0 and "polls" >= 0 and "ipn_count" >= 0),
	CONSTRAINT "transactions_leased_are_due" CHECK ("lease_id" is null or "due_at" is not null),
	CONSTRAINT "transactions_abandoned_rest" CHECK ("abandoned_at" is null or "due_at" is null),
	CONSTRAINT "transactions_pending_is_open" CHECK ("state" <> 'pending' or not "final"),
	CONSTRAINT "transactions_state_known" CHECK ("state" in ('pending', 'paid', 'partially_refunded', 'refunded', 'failed'))
);
--> statement-breakpoint
CREATE TABLE "webhook_attempts" (
	"merchant_code" text NOT NULL,
	"endpoint_id" uuid NOT NULL,
	"id" bigint GENERATED BY DEFAULT AS IDENTITY (sequence name "webhook_attempts_id_seq" INCREMENT BY 1 MINVALUE 1 MAXVALUE 9223372036854775807 START WITH 1 CACHE 1),
	"event_id" bigint NOT NULL,
	"type" text NOT NULL,
	"transaction_id" text NOT NULL,
	"attempt" bigint NOT NULL,
	"sent_at" timestamp with time zone NOT NULL,
	"duration_ms" bigint NOT NULL,
	"http_status" bigint,
	"error" text,
	"answer" text,
	CONSTRAINT "webhook_attempts_pkey" PRIMARY KEY("merchant_code","endpoint_id","id"),
	CONSTRAINT "webhook_attempts_counts_from_one" CHECK ("attempt" > 0)
);
--> statement-breakpoint
CREATE TABLE "webhook_endpoints" (
	"id" uuid PRIMARY KEY DEFAULT gen_random_uuid() NOT NULL,
	"merchant_code" text NOT NULL,
	"key_chain_id" uuid NOT NULL,
	"url" text NOT NULL,
	"types" text[] NOT NULL,
	"api_version" text NOT NULL,
	"secret" "bytea" NOT NULL,
	"previous_secret" "bytea",
	"previous_secret_until" timestamp with time zone,
	"cursor" bigint NOT NULL,
	"ahead" bigint[] DEFAULT '{}' NOT NULL,
	"due_at" timestamp with time zone DEFAULT now() NOT NULL,
	"lease_id" uuid,
	"lease_owner" uuid,
	"failing_since" timestamp with time zone,
	"disabled_at" timestamp with time zone,
	"disabled_reason" text,
	"created_at" timestamp with time zone DEFAULT now() NOT NULL,
	CONSTRAINT "webhook_endpoints_disabled_says_why" CHECK (("disabled_at" is null) = ("disabled_reason" is null)),
	CONSTRAINT "webhook_endpoints_previous_secret_ends" CHECK (("previous_secret" is null) = ("previous_secret_until" is null))
);
--> statement-breakpoint
CREATE TABLE "webhook_retries" (
	"endpoint_id" uuid NOT NULL,
	"event_id" bigint NOT NULL,
	"merchant_code" text NOT NULL,
	"transaction_id" text NOT NULL,
	"attempts" integer DEFAULT 0 NOT NULL,
	"due_at" timestamp with time zone DEFAULT now() NOT NULL,
	"failing_since" timestamp with time zone,
	"last_error" text,
	CONSTRAINT "webhook_retries_pkey" PRIMARY KEY("event_id","endpoint_id"),
	CONSTRAINT "webhook_retries_attempts_not_negative" CHECK ("attempts" >= 0)
);
--> statement-breakpoint
ALTER TABLE "payments" ADD CONSTRAINT "payments_transaction" FOREIGN KEY ("merchant_code","transaction_id") REFERENCES "transactions"("merchant_code","transaction_id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "refunds" ADD CONSTRAINT "refunds_payment" FOREIGN KEY ("merchant_code","payment_id") REFERENCES "payments"("merchant_code","payment_id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "webhook_retries" ADD CONSTRAINT "webhook_retries_event" FOREIGN KEY ("event_id") REFERENCES "events"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "webhook_retries" ADD CONSTRAINT "webhook_retries_endpoint" FOREIGN KEY ("endpoint_id") REFERENCES "webhook_endpoints"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
CREATE INDEX "actors_chain" ON "actors" USING btree ("chain_id");--> statement-breakpoint
CREATE UNIQUE INDEX "actors_name" ON "actors" USING btree ("folded_name") WHERE "kind" = 'person' and "ended_at" is null;--> statement-breakpoint
CREATE UNIQUE INDEX "actors_email" ON "actors" USING btree ("folded_email") WHERE "ended_at" is null;--> statement-breakpoint
CREATE INDEX "audit_entries_object" ON "audit_entries" USING btree ("object_id");--> statement-breakpoint
CREATE INDEX "audit_entries_at" ON "audit_entries" USING btree ("at","id");--> statement-breakpoint
CREATE INDEX "changes_transaction" ON "changes" USING btree ("merchant_code","transaction_id","at");--> statement-breakpoint
CREATE INDEX "discrepancies_newest" ON "discrepancies" USING btree ("merchant_code","at" DESC NULLS FIRST,"id" DESC NULLS FIRST);--> statement-breakpoint
CREATE INDEX "discrepancies_of_kind" ON "discrepancies" USING btree ("merchant_code","kind","at" DESC NULLS FIRST,"id" DESC NULLS FIRST);--> statement-breakpoint
CREATE INDEX "discrepancies_open" ON "discrepancies" USING btree ("merchant_code","kind","at","id") WHERE "resolved_at" is null;--> statement-breakpoint
CREATE INDEX "events_of_merchant" ON "events" USING btree ("merchant_code","id");--> statement-breakpoint
CREATE INDEX "external_refunds_of_payment" ON "external_refunds" USING btree ("merchant_code","payment_id");--> statement-breakpoint
CREATE INDEX "gateway_calls_transaction" ON "gateway_calls" USING btree ("merchant_code","transaction_id","sent_at");--> statement-breakpoint
CREATE INDEX "ipn_events_of_transaction" ON "ipn_events" USING btree ("merchant_code","transaction_id","first_received_at") WHERE "transaction_id" is not null;--> statement-breakpoint
CREATE INDEX "ipn_events_refund_payment" ON "ipn_events" USING btree ("merchant_code","payment_id") WHERE "kind" = 'refund';--> statement-breakpoint
CREATE INDEX "ipn_events_refund_unhandled" ON "ipn_events" USING btree ("merchant_code","payment_id") WHERE "kind" = 'refund' and "handled_at" is null;--> statement-breakpoint
CREATE INDEX "ipn_events_refund_request" ON "ipn_events" USING btree ("merchant_code",lower("request_id"),"handled_at") WHERE "kind" = 'refund';--> statement-breakpoint
CREATE INDEX "payments_transaction_id" ON "payments" USING btree ("merchant_code","transaction_id");--> statement-breakpoint
CREATE INDEX "payments_newest" ON "payments" USING btree ("merchant_code","first_seen_at" DESC NULLS FIRST,"payment_id" DESC NULLS FIRST);--> statement-breakpoint
CREATE INDEX "payments_amount" ON "payments" USING btree ("merchant_code","amount" DESC NULLS FIRST,"first_seen_at" DESC NULLS FIRST,"payment_id" DESC NULLS FIRST);--> statement-breakpoint
CREATE INDEX "refund_attempts_refund" ON "refund_attempts" USING btree ("merchant_code","refund_id");--> statement-breakpoint
CREATE INDEX "refunds_of_payment" ON "refunds" USING btree ("merchant_code","payment_id");--> statement-breakpoint
CREATE INDEX "refunds_of_transaction" ON "refunds" USING btree ("merchant_code","transaction_id");--> statement-breakpoint
CREATE INDEX "refunds_newest" ON "refunds" USING btree ("merchant_code","requested_at" DESC NULLS FIRST,"refund_id" DESC NULLS FIRST);--> statement-breakpoint
CREATE INDEX "refunds_amount" ON "refunds" USING btree ("merchant_code","amount" DESC NULLS FIRST,"requested_at" DESC NULLS FIRST,"refund_id" DESC NULLS FIRST);--> statement-breakpoint
CREATE INDEX "refunds_requested_by" ON "refunds" USING btree ("merchant_code","requested_by" DESC NULLS FIRST,"requested_at" DESC NULLS FIRST,"refund_id" DESC NULLS FIRST);--> statement-breakpoint
CREATE INDEX "refunds_notified_reference" ON "refunds" USING btree ("merchant_code","notified_reference") WHERE "notified_reference" is not null;--> statement-breakpoint
CREATE INDEX "refunds_gateway_refund" ON "refunds" USING btree ("merchant_code","gateway_refund_id") WHERE "gateway_refund_id" is not null;--> statement-breakpoint
CREATE INDEX "refunds_open" ON "refunds" USING btree ("status") WHERE "status" not in ('succeeded', 'failed');--> statement-breakpoint
CREATE INDEX "refunds_waiting" ON "refunds" USING btree ("merchant_code","status",coalesce("last_sent_at", "requested_at"),"refund_id") WHERE "status" in ('awaiting_approval', 'needs_review', 'accepted', 'unknown');--> statement-breakpoint
CREATE INDEX "refunds_of_day" ON "refunds" USING btree ("cap_key_id","cap_day") WHERE "cap_key_id" is not null;--> statement-breakpoint
CREATE INDEX "refunds_forget" ON "refunds" USING btree ("forget_receiver_at") WHERE "receiver" is not null;--> statement-breakpoint
CREATE INDEX "sessions_person" ON "sessions" USING btree ("person_id");--> statement-breakpoint
CREATE INDEX "transactions_due" ON "transactions" USING btree ("merchant_code","due_at") WHERE "due_at" is not null;--> statement-breakpoint
CREATE INDEX "transactions_reconcile" ON "transactions" USING btree ("reconcile_at") WHERE "reconcile_at" < 'infinity';--> statement-breakpoint
CREATE INDEX "transactions_unconfirmed" ON "transactions" USING btree ("asked_for_at") WHERE "unconfirmed";--> statement-breakpoint
CREATE INDEX "transactions_due_unconfirmed" ON "transactions" USING btree ("merchant_code","due_at") WHERE "due_at" is not null and "unconfirmed";--> statement-breakpoint
CREATE INDEX "transactions_newest" ON "transactions" USING btree ("merchant_code","first_seen_at" DESC NULLS FIRST,"transaction_id" DESC NULLS FIRST);--> statement-breakpoint
CREATE INDEX "transactions_order_check" ON "transactions" USING btree ("merchant_code") WHERE "order_check_due";--> statement-breakpoint
CREATE INDEX "transactions_order" ON "transactions" USING btree ("merchant_code","order_id") WHERE "order_id" is not null;--> statement-breakpoint
CREATE INDEX "transactions_merchant_txn" ON "transactions" USING btree ("merchant_code","merchant_txn_id") WHERE "merchant_txn_id" is not null;--> statement-breakpoint
CREATE INDEX "webhook_attempts_failed" ON "webhook_attempts" USING btree ("merchant_code","endpoint_id","id") WHERE "error" is not null;--> statement-breakpoint
CREATE INDEX "webhook_attempts_transaction" ON "webhook_attempts" USING btree ("merchant_code","transaction_id","id");--> statement-breakpoint
CREATE INDEX "webhook_retries_due" ON "webhook_retries" USING btree ("endpoint_id","due_at");--> statement-breakpoint
CREATE INDEX "webhook_retries_order" ON "webhook_retries" USING btree ("endpoint_id","merchant_code","transaction_id","event_id");
