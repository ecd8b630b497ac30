CREATE TABLE "api_keys" (
	"id" uuid PRIMARY KEY DEFAULT gen_random_uuid() NOT NULL,
	"name" text NOT NULL,
	"hash" "bytea" NOT NULL,
	"scopes" text[] NOT NULL,
	"merchant_code" text NOT NULL,
	"created_at" timestamp with time zone DEFAULT now() NOT NULL,
	"expires_at" timestamp with time zone,
	"revoked_at" timestamp with time zone,
	CONSTRAINT "api_keys_hash" UNIQUE("hash"),
	CONSTRAINT "api_keys_hash_is_sha256" CHECK (length("api_keys"."hash") = 32)
);
--> statement-breakpoint
CREATE TABLE "changes" (
	"id" bigserial PRIMARY KEY NOT NULL,
	"merchant_code" text NOT NULL,
	"transaction_id" text NOT NULL,
	"payment_id" text,
	"field" text NOT NULL,
	"before" text,
	"after" text,
	"call_id" bigint,
	"cause" text NOT NULL,
	"at" timestamp with time zone DEFAULT now() NOT NULL
);
--> statement-breakpoint
CREATE TABLE "gateway_calls" (
	"id" bigserial PRIMARY KEY NOT NULL,
	"merchant_code" text NOT NULL,
	"transaction_id" text NOT NULL,
	"command" text NOT NULL,
	"body_sha256" "bytea" NOT NULL,
	"sent_at" timestamp with time zone NOT NULL,
	"duration_ms" integer NOT NULL,
	"outcome" text NOT NULL,
	"http_status" integer,
	"code" text,
	"message" text,
	"answer" jsonb,
	CONSTRAINT "gateway_calls_outcome_known" CHECK ("gateway_calls"."outcome" in ('answered', 'rejected', 'unavailable', 'unknown'))
);
--> statement-breakpoint
CREATE TABLE "ipn_events" (
	"id" bigserial PRIMARY KEY NOT NULL,
	"merchant_code" text NOT NULL,
	"fingerprint" "bytea" NOT NULL,
	"kind" text NOT NULL,
	"transaction_id" text,
	"payment_id" text,
	"request_id" text,
	"verdict" text NOT NULL,
	"body" text NOT NULL,
	"content_type" text NOT NULL,
	"address" text NOT NULL,
	"headers" jsonb NOT NULL,
	"deliveries" integer NOT NULL,
	"first_received_at" timestamp with time zone DEFAULT now() NOT NULL,
	"last_received_at" timestamp with time zone DEFAULT now() NOT NULL,
	CONSTRAINT "ipn_events_fingerprint" UNIQUE("merchant_code","fingerprint"),
	CONSTRAINT "ipn_events_deliveries_positive" CHECK ("ipn_events"."deliveries" > 0),
	CONSTRAINT "ipn_events_kind_has_its_id" CHECK (case "ipn_events"."kind" when 'payment' then "ipn_events"."transaction_id" is not null when 'refund' then "ipn_events"."request_id" is not null and "ipn_events"."transaction_id" is null else false end)
);
--> statement-breakpoint
CREATE TABLE "merchant_accounts" (
	"merchant_code" text PRIMARY KEY NOT NULL,
	"first_seen_at" timestamp with time zone DEFAULT now() NOT NULL
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
	"payment_method" text NOT NULL,
	"missing" boolean DEFAULT false NOT NULL,
	"as_of" timestamp with time zone NOT NULL,
	"first_seen_at" timestamp with time zone DEFAULT now() NOT NULL,
	"updated_at" timestamp with time zone DEFAULT now() NOT NULL,
	CONSTRAINT "payments_pkey" PRIMARY KEY("merchant_code","payment_id"),
	CONSTRAINT "payments_amounts_not_negative" CHECK ("payments"."amount" >= 0 and "payments"."refunded_amount" >= 0),
	CONSTRAINT "payments_amounts_exact" CHECK (scale("payments"."amount") <= 4 and scale("payments"."refunded_amount") <= 4 and "payments"."amount" < 1e18 and "payments"."refunded_amount" < 1e18)
);
--> statement-breakpoint
CREATE TABLE "transactions" (
	"merchant_code" text NOT NULL,
	"transaction_id" text NOT NULL,
	"order_id" text,
	"merchant_txn_id" text,
	"currency" text,
	"state" text DEFAULT 'pending' NOT NULL,
	"final" boolean DEFAULT false NOT NULL,
	"paid_amount" numeric DEFAULT '0' NOT NULL,
	"refunded_amount" numeric DEFAULT '0' NOT NULL,
	"duplicate_payment" boolean DEFAULT false NOT NULL,
	"version" bigint DEFAULT 1 NOT NULL,
	"due_at" timestamp with time zone,
	"lease_id" uuid,
	"want" bigint DEFAULT 1 NOT NULL,
	"claimed" bigint DEFAULT 0 NOT NULL,
	"attempts" integer DEFAULT 0 NOT NULL,
	"polls" integer DEFAULT 0 NOT NULL,
	"last_error" text,
	"abandoned_at" timestamp with time zone,
	"asked_for_at" timestamp with time zone DEFAULT now() NOT NULL,
	"queried_at" timestamp with time zone,
	"gap_ms" integer DEFAULT 0 NOT NULL,
	"as_of" timestamp with time zone,
	"ipn_count" integer DEFAULT 0 NOT NULL,
	"first_seen_at" timestamp with time zone DEFAULT now() NOT NULL,
	"updated_at" timestamp with time zone DEFAULT now() NOT NULL,
	CONSTRAINT "transactions_pkey" PRIMARY KEY("merchant_code","transaction_id"),
	CONSTRAINT "transactions_amounts_not_negative" CHECK ("transactions"."paid_amount" >= 0 and "transactions"."refunded_amount" >= 0),
	CONSTRAINT "transactions_counters_in_order" CHECK ("transactions"."claimed" <= "transactions"."want" and "transactions"."attempts" >= 0 and "transactions"."polls" >= 0 and "transactions"."ipn_count" >= 0),
	CONSTRAINT "transactions_leased_are_due" CHECK ("transactions"."lease_id" is null or "transactions"."due_at" is not null),
	CONSTRAINT "transactions_abandoned_rest" CHECK ("transactions"."abandoned_at" is null or "transactions"."due_at" is null),
	CONSTRAINT "transactions_pending_is_open" CHECK ("transactions"."state" <> 'pending' or not "transactions"."final"),
	CONSTRAINT "transactions_state_known" CHECK ("transactions"."state" in ('pending', 'paid', 'partially_refunded', 'refunded', 'failed'))
);
--> statement-breakpoint
ALTER TABLE "payments" ADD CONSTRAINT "payments_transaction" FOREIGN KEY ("merchant_code","transaction_id") REFERENCES "public"."transactions"("merchant_code","transaction_id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
CREATE INDEX "changes_transaction" ON "changes" USING btree ("merchant_code","transaction_id","at");--> statement-breakpoint
CREATE INDEX "gateway_calls_transaction" ON "gateway_calls" USING btree ("merchant_code","transaction_id","sent_at");--> statement-breakpoint
CREATE INDEX "ipn_events_transaction" ON "ipn_events" USING btree ("merchant_code","transaction_id");--> statement-breakpoint
CREATE INDEX "payments_transaction_id" ON "payments" USING btree ("merchant_code","transaction_id");--> statement-breakpoint
CREATE INDEX "payments_newest" ON "payments" USING btree ("merchant_code","first_seen_at" DESC NULLS FIRST,"payment_id" DESC NULLS FIRST);--> statement-breakpoint
CREATE INDEX "transactions_due" ON "transactions" USING btree ("due_at") WHERE "transactions"."due_at" is not null;--> statement-breakpoint
CREATE INDEX "transactions_newest" ON "transactions" USING btree ("merchant_code","first_seen_at" DESC NULLS FIRST,"transaction_id" DESC NULLS FIRST);--> statement-breakpoint
CREATE INDEX "transactions_order" ON "transactions" USING btree ("merchant_code","order_id") WHERE "transactions"."order_id" is not null;