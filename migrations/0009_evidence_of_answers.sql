ALTER TABLE "payments" ADD COLUMN "unreadable" boolean DEFAULT false NOT NULL;--> statement-breakpoint
ALTER TABLE "transactions" ADD COLUMN "unapplied_entries" boolean DEFAULT false NOT NULL;