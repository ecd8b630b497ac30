ALTER TABLE "api_key_days" ADD COLUMN "refunded_by_currency" jsonb DEFAULT '{}'::jsonb NOT NULL;--> statement-breakpoint
ALTER TABLE "api_keys" ADD COLUMN "refund_max_by_currency" jsonb;--> statement-breakpoint
ALTER TABLE "api_keys" ADD COLUMN "refund_daily_max_by_currency" jsonb;--> statement-breakpoint
ALTER TABLE "refunds" ADD COLUMN "cap_key_id" uuid;--> statement-breakpoint
ALTER TABLE "refunds" ADD COLUMN "cap_day" date;--> statement-breakpoint
ALTER TABLE "refunds" ADD COLUMN "cap_currency" text;--> statement-breakpoint
-- No row is in the index yet: writes wait for a scan of the table, moments for a hundred thousand refunds.
-- squawk-ignore require-concurrent-index-creation
CREATE INDEX "refunds_unsent" ON "refunds" USING btree ("cap_key_id","cap_day") WHERE "refunds"."status" = 'failed' and "refunds"."attempts" = 0;