CREATE TABLE "api_key_minutes" (
	"key_id" uuid NOT NULL,
	"minute" timestamp with time zone NOT NULL,
	"reserved" bigint NOT NULL,
	"granted" bigint NOT NULL,
	"processes" text[] NOT NULL,
	CONSTRAINT "api_key_minutes_pkey" PRIMARY KEY("key_id","minute"),
	CONSTRAINT "api_key_minutes_reserved_positive" CHECK ("api_key_minutes"."reserved" > 0)
);
--> statement-breakpoint
-- Tables in the order in which the service locks them, so that neither waits for the other for ever. Notifications are
-- refused, and sent again, while the indexes are built: some seconds for each million rows.
-- squawk-ignore require-concurrent-index-creation
CREATE INDEX "ipn_events_of_transaction" ON "ipn_events" USING btree ("merchant_code","transaction_id","first_received_at") WHERE "ipn_events"."transaction_id" is not null;--> statement-breakpoint
ALTER TABLE "transactions" ADD COLUMN "asked_by" uuid;--> statement-breakpoint
ALTER TABLE "gateway_calls" ADD COLUMN "body_key_id" text;--> statement-breakpoint
ALTER TABLE "refund_attempts" ADD COLUMN "body_key_id" text;--> statement-breakpoint
ALTER TABLE "api_keys" ADD COLUMN "networks" text[];--> statement-breakpoint
ALTER TABLE "api_keys" ADD COLUMN "last_used_at" timestamp with time zone;--> statement-breakpoint
ALTER TABLE "api_keys" ADD COLUMN "last_used_from" text;--> statement-breakpoint
-- The table is new.
-- squawk-ignore require-concurrent-index-creation
CREATE INDEX "api_key_minutes_minute" ON "api_key_minutes" USING btree ("minute");--> statement-breakpoint
-- One scan of the table: every row of an earlier release is in it.
-- squawk-ignore require-concurrent-index-creation
CREATE INDEX "gateway_calls_plain_body" ON "gateway_calls" USING btree ("id") WHERE "gateway_calls"."body_key_id" is null;--> statement-breakpoint
-- One scan of the table, which has a row for each refund sent.
-- squawk-ignore require-concurrent-index-creation
CREATE INDEX "refund_attempts_plain_body" ON "refund_attempts" USING btree ("id") WHERE "refund_attempts"."body_key_id" is null;--> statement-breakpoint
-- Few rows: ids that no notification has named.
-- squawk-ignore require-concurrent-index-creation
CREATE INDEX "transactions_due_unconfirmed" ON "transactions" USING btree ("merchant_code","due_at") WHERE "transactions"."due_at" is not null and "transactions"."unconfirmed";