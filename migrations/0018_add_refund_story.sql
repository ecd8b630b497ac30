ALTER TABLE "gateway_calls" ADD COLUMN "received" text;--> statement-breakpoint
ALTER TABLE "refund_attempts" ADD COLUMN "received" text;--> statement-breakpoint
ALTER TABLE "refunds" ADD COLUMN "fee" numeric;--> statement-breakpoint
ALTER TABLE "refunds" ADD COLUMN "notified_reference" text;--> statement-breakpoint
ALTER TABLE "refunds" ADD COLUMN "failure_words" text;