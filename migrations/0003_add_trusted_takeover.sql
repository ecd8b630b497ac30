ALTER TABLE "installation" ADD COLUMN "trusted_at" timestamp with time zone;--> statement-breakpoint
ALTER TABLE "installation" ADD COLUMN "trusted_seen_at" timestamp with time zone;