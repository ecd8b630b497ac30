ALTER TABLE "payments" ADD COLUMN "counted_refunded" numeric;--> statement-breakpoint
ALTER TABLE "payments" ADD COLUMN "refunded_fell_at" timestamp with time zone;--> statement-breakpoint
ALTER TABLE "payments" ADD COLUMN "expected_fall" numeric;