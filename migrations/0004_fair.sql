DROP INDEX "transactions_due";--> statement-breakpoint
ALTER TABLE "merchant_accounts" ADD COLUMN "paid_until" timestamp with time zone DEFAULT now() NOT NULL;--> statement-breakpoint
CREATE INDEX "transactions_due" ON "transactions" USING btree ("merchant_code","due_at") WHERE "transactions"."due_at" is not null;