ALTER TABLE "refunds" ADD COLUMN "requested_number" bigint;--> statement-breakpoint
ALTER TABLE "refunds" ADD COLUMN "approved_number" bigint;--> statement-breakpoint
ALTER TABLE "refunds" ADD COLUMN "first_sent_number" bigint;--> statement-breakpoint
ALTER TABLE "refunds" ADD COLUMN "refused_number" bigint;--> statement-breakpoint
ALTER TABLE "refunds" ADD COLUMN "failure_notified_number" bigint;
