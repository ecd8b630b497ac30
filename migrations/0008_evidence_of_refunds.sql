ALTER TABLE "refunds" DROP CONSTRAINT "refunds_over_or_due";--> statement-breakpoint
ALTER TABLE "foreign_refunds" ADD COLUMN "outcome" text;--> statement-breakpoint
ALTER TABLE "foreign_refunds" ADD COLUMN "notified_at" timestamp with time zone;--> statement-breakpoint
ALTER TABLE "payments" ADD COLUMN "first_as_of" timestamp with time zone;--> statement-breakpoint
ALTER TABLE "payments" ADD COLUMN "refunded_fell" boolean DEFAULT false NOT NULL;--> statement-breakpoint
ALTER TABLE "payments" ADD COLUMN "unlisted_since" timestamp with time zone;--> statement-breakpoint
ALTER TABLE "refunds" ADD COLUMN "success_notified_at" timestamp with time zone;--> statement-breakpoint
ALTER TABLE "refunds" ADD COLUMN "in_first_sight" boolean DEFAULT false NOT NULL;--> statement-breakpoint
ALTER TABLE "refunds" ADD COLUMN "review" text;--> statement-breakpoint
ALTER TABLE "foreign_refunds" DROP CONSTRAINT "foreign_refunds_pkey";
--> statement-breakpoint
-- The table holds only refunds made at portals: its index is built in moments.
-- squawk-ignore constraint-missing-not-valid, adding-serial-primary-key-field
ALTER TABLE "foreign_refunds" ADD CONSTRAINT "foreign_refunds_pkey" PRIMARY KEY("merchant_code","request_id","payment_id","amount");--> statement-breakpoint
-- Not checked for existing rows, which the stricter constraint before it admitted.
ALTER TABLE "refunds" ADD CONSTRAINT "refunds_ended_or_due" CHECK ("refunds"."status" = 'needs_review' or ("refunds"."status" in ('succeeded', 'failed')) = ("refunds"."due_at" is null)) NOT VALID;