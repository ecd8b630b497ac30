ALTER TABLE "refunds" ADD COLUMN "no_growth_since" timestamp with time zone;--> statement-breakpoint
ALTER TABLE "refunds" ADD COLUMN "resolved_principal" text;--> statement-breakpoint
ALTER TABLE "refunds" ADD COLUMN "resolved_at" timestamp with time zone;--> statement-breakpoint
ALTER TABLE "refunds" ADD COLUMN "decided_growth" numeric;--> statement-breakpoint
ALTER TABLE "refunds" ADD COLUMN "return_seen_at" timestamp with time zone;