ALTER TABLE "ipn_events" ADD COLUMN "order_id" text;--> statement-breakpoint
ALTER TABLE "ipn_events" ADD COLUMN "merchant_txn_id" text;--> statement-breakpoint
ALTER TABLE "refunds" ADD COLUMN "surplus" boolean DEFAULT false NOT NULL;--> statement-breakpoint
ALTER TABLE "transactions" ADD COLUMN "order_id_verified" boolean DEFAULT false NOT NULL;--> statement-breakpoint
ALTER TABLE "transactions" ADD COLUMN "merchant_txn_id_verified" boolean DEFAULT false NOT NULL;--> statement-breakpoint
ALTER TABLE "transactions" ADD COLUMN "currency_verified" boolean DEFAULT false NOT NULL;--> statement-breakpoint
ALTER TABLE "transactions" ADD COLUMN "expected_amount" numeric;--> statement-breakpoint
ALTER TABLE "transactions" ADD COLUMN "same_order" text[] DEFAULT '{}' NOT NULL;--> statement-breakpoint
ALTER TABLE "transactions" ADD COLUMN "order_check_due" boolean DEFAULT false NOT NULL;--> statement-breakpoint
ALTER TABLE "transactions" ADD COLUMN "unconfirmed" boolean DEFAULT false NOT NULL;--> statement-breakpoint
-- No row is in it yet: its build is one scan of the table.
-- squawk-ignore require-concurrent-index-creation
CREATE INDEX "transactions_unconfirmed" ON "transactions" USING btree ("asked_for_at") WHERE "transactions"."unconfirmed";--> statement-breakpoint
-- No row is in it yet: its build is one scan of the table.
-- squawk-ignore require-concurrent-index-creation
CREATE INDEX "transactions_order_check" ON "transactions" USING btree ("merchant_code") WHERE "transactions"."order_check_due";