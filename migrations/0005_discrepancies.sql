ALTER TABLE "discrepancies" ADD COLUMN "times" integer DEFAULT 1 NOT NULL;--> statement-breakpoint
ALTER TABLE "discrepancies" ADD COLUMN "last_seen_at" timestamp with time zone;--> statement-breakpoint
ALTER TABLE "discrepancies" ADD COLUMN "resolved_at" timestamp with time zone;--> statement-breakpoint
ALTER TABLE "transactions" ADD COLUMN "reconcile_at" timestamp with time zone;--> statement-breakpoint
ALTER TABLE "transactions" ADD COLUMN "ipn_measured" boolean DEFAULT false NOT NULL;--> statement-breakpoint
CREATE INDEX "discrepancies_newest" ON "discrepancies" USING btree ("merchant_code","at" DESC NULLS FIRST,"id" DESC NULLS FIRST);--> statement-breakpoint
CREATE INDEX "discrepancies_of_kind" ON "discrepancies" USING btree ("merchant_code","kind","at" DESC NULLS FIRST,"id" DESC NULLS FIRST);--> statement-breakpoint
CREATE INDEX "transactions_reconcile" ON "transactions" USING btree ("reconcile_at") WHERE "transactions"."reconcile_at" < 'infinity';--> statement-breakpoint
ALTER TABLE "discrepancies" ADD CONSTRAINT "discrepancies_times_positive" CHECK ("discrepancies"."times" > 0);