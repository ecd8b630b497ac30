CREATE TABLE "api_key_days" (
	"key_id" uuid NOT NULL,
	"day" date NOT NULL,
	"refunded" numeric DEFAULT '0' NOT NULL,
	CONSTRAINT "api_key_days_pkey" PRIMARY KEY("key_id","day"),
	CONSTRAINT "api_key_days_refunded_not_negative" CHECK ("api_key_days"."refunded" >= 0)
);
--> statement-breakpoint
CREATE TABLE "discrepancies" (
	"id" bigserial PRIMARY KEY NOT NULL,
	"merchant_code" text NOT NULL,
	"transaction_id" text NOT NULL,
	"payment_id" text,
	"refund_id" uuid,
	"kind" text NOT NULL,
	"ours" text NOT NULL,
	"theirs" text NOT NULL,
	"at" timestamp with time zone DEFAULT now() NOT NULL,
	CONSTRAINT "discrepancies_once" UNIQUE NULLS NOT DISTINCT("merchant_code","transaction_id","kind","payment_id","refund_id","ours","theirs")
);
--> statement-breakpoint
CREATE TABLE "foreign_refunds" (
	"merchant_code" text NOT NULL,
	"request_id" text NOT NULL,
	"payment_id" text NOT NULL,
	"amount" numeric NOT NULL,
	"matched" boolean DEFAULT false NOT NULL,
	"matched_at" timestamp with time zone,
	"ipn_event_id" bigint NOT NULL,
	"first_seen_at" timestamp with time zone DEFAULT now() NOT NULL,
	CONSTRAINT "foreign_refunds_pkey" PRIMARY KEY("merchant_code","request_id"),
	CONSTRAINT "foreign_refunds_amount_positive" CHECK ("foreign_refunds"."amount" > 0)
);
--> statement-breakpoint
CREATE TABLE "refund_attempts" (
	"id" bigserial PRIMARY KEY NOT NULL,
	"merchant_code" text NOT NULL,
	"refund_id" uuid NOT NULL,
	"body_sha256" "bytea" NOT NULL,
	"snapshot_call_id" bigint NOT NULL,
	"recorded_at" timestamp with time zone NOT NULL,
	"outcome" text,
	"http_status" integer,
	"code" text,
	"message" text,
	"duration_ms" integer
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
	"idempotency_key" text NOT NULL,
	"fingerprint" "bytea" NOT NULL,
	"requested_by" text NOT NULL,
	"status" text NOT NULL,
	"attempts" integer DEFAULT 0 NOT NULL,
	"first_sent_at" timestamp with time zone,
	"last_sent_at" timestamp with time zone,
	"sent_amid_growth" boolean DEFAULT false NOT NULL,
	"unanswered" boolean DEFAULT false NOT NULL,
	"refunded_before" numeric,
	"refused_code" text,
	"refused_at" timestamp with time zone,
	"failure_code" text,
	"failure_notified_at" timestamp with time zone,
	"gateway_refund_id" text,
	"known" boolean DEFAULT false NOT NULL,
	"inferred" boolean DEFAULT false NOT NULL,
	"matched" boolean DEFAULT false NOT NULL,
	"failure_source" text,
	"failure_reason" text,
	"failure_message" text,
	"due_at" timestamp with time zone,
	"polls" integer DEFAULT 0 NOT NULL,
	"requested_at" timestamp with time zone DEFAULT now() NOT NULL,
	"updated_at" timestamp with time zone DEFAULT now() NOT NULL,
	CONSTRAINT "refunds_pkey" PRIMARY KEY("merchant_code","refund_id"),
	CONSTRAINT "refunds_idempotency_key" UNIQUE("merchant_code","idempotency_key"),
	CONSTRAINT "refunds_amount_positive" CHECK ("refunds"."amount" > 0 and scale("refunds"."amount") <= 4),
	CONSTRAINT "refunds_status_known" CHECK ("refunds"."status" in ('pending', 'sending', 'accepted', 'unknown', 'succeeded', 'failed', 'needs_review')),
	CONSTRAINT "refunds_over_or_due" CHECK (("refunds"."status" in ('succeeded', 'failed', 'needs_review')) = ("refunds"."due_at" is null)),
	CONSTRAINT "refunds_sent_has_attempt" CHECK ("refunds"."status" in ('pending', 'succeeded', 'failed', 'needs_review') or "refunds"."attempts" > 0),
	CONSTRAINT "refunds_matched_succeeded" CHECK (not "refunds"."matched" or "refunds"."status" = 'succeeded'),
	CONSTRAINT "refunds_failed_says_why" CHECK ("refunds"."status" <> 'failed' or "refunds"."failure_source" is not null)
);
--> statement-breakpoint
ALTER TABLE "api_keys" ADD COLUMN "refund_max" numeric;--> statement-breakpoint
ALTER TABLE "api_keys" ADD COLUMN "refund_daily_max" numeric;--> statement-breakpoint
ALTER TABLE "changes" ADD COLUMN "refund_id" uuid;--> statement-breakpoint
ALTER TABLE "changes" ADD COLUMN "ipn_event_id" bigint;--> statement-breakpoint
ALTER TABLE "ipn_events" ADD COLUMN "amount" numeric;--> statement-breakpoint
ALTER TABLE "ipn_events" ADD COLUMN "code" text;--> statement-breakpoint
ALTER TABLE "ipn_events" ADD COLUMN "handled_at" timestamp with time zone;--> statement-breakpoint
ALTER TABLE "refunds" ADD CONSTRAINT "refunds_payment" FOREIGN KEY ("merchant_code","payment_id") REFERENCES "public"."payments"("merchant_code","payment_id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
CREATE INDEX "foreign_refunds_of_payment" ON "foreign_refunds" USING btree ("merchant_code","payment_id");--> statement-breakpoint
CREATE INDEX "refund_attempts_refund" ON "refund_attempts" USING btree ("merchant_code","refund_id");--> statement-breakpoint
CREATE INDEX "refunds_of_payment" ON "refunds" USING btree ("merchant_code","payment_id");--> statement-breakpoint
CREATE INDEX "refunds_of_transaction" ON "refunds" USING btree ("merchant_code","transaction_id");--> statement-breakpoint
CREATE INDEX "refunds_newest" ON "refunds" USING btree ("merchant_code","requested_at" DESC NULLS FIRST,"refund_id" DESC NULLS FIRST);--> statement-breakpoint
CREATE INDEX "refunds_open" ON "refunds" USING btree ("status") WHERE "refunds"."status" not in ('succeeded', 'failed');--> statement-breakpoint
CREATE INDEX "refunds_forget" ON "refunds" USING btree ("forget_receiver_at") WHERE "refunds"."receiver" is not null;--> statement-breakpoint
CREATE INDEX "ipn_events_refund_payment" ON "ipn_events" USING btree ("merchant_code","payment_id") WHERE "ipn_events"."kind" = 'refund';--> statement-breakpoint
CREATE INDEX "ipn_events_refund_unhandled" ON "ipn_events" USING btree ("merchant_code","payment_id") WHERE "ipn_events"."kind" = 'refund' and "ipn_events"."handled_at" is null;