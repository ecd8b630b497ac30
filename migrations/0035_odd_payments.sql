ALTER TABLE "payments" ADD COLUMN "counted_status" text;--> statement-breakpoint
ALTER TABLE "payments" ADD COLUMN "counted_amount" numeric;--> statement-breakpoint
ALTER TABLE "payments" ADD COLUMN "amount_changed_at" timestamp with time zone;