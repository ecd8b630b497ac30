ALTER TABLE "refunds" DROP CONSTRAINT "refunds_status_known";--> statement-breakpoint
ALTER TABLE "refunds" DROP CONSTRAINT "refunds_ended_or_due";--> statement-breakpoint
ALTER TABLE "refunds" DROP CONSTRAINT "refunds_sent_has_attempt";--> statement-breakpoint
ALTER TABLE "refunds" DROP CONSTRAINT "refunds_matched_succeeded";--> statement-breakpoint
-- The table holds only refunds made at portals: it is rewritten, and its index built, in moments.
-- squawk-ignore adding-field-with-default
ALTER TABLE "foreign_refunds" ADD COLUMN "id" uuid DEFAULT gen_random_uuid() NOT NULL;--> statement-breakpoint
ALTER TABLE "foreign_refunds" ADD COLUMN "source" text DEFAULT 'notification' NOT NULL;--> statement-breakpoint
ALTER TABLE "foreign_refunds" ADD COLUMN "resolution" jsonb;--> statement-breakpoint
ALTER TABLE "refunds" ADD COLUMN "resolution" jsonb;--> statement-breakpoint
-- Counts to two.
-- squawk-ignore prefer-bigint-over-int
ALTER TABLE "refunds" ADD COLUMN "return_sightings" integer DEFAULT 0 NOT NULL;--> statement-breakpoint
-- squawk-ignore disallowed-unique-constraint, constraint-missing-not-valid
ALTER TABLE "foreign_refunds" ADD CONSTRAINT "foreign_refunds_id" UNIQUE("merchant_code","id");--> statement-breakpoint
-- Not checked for existing rows, which stricter constraints admitted.
ALTER TABLE "foreign_refunds" ADD CONSTRAINT "foreign_refunds_has_a_source" CHECK (case "foreign_refunds"."source" when 'notification' then "foreign_refunds"."ipn_event_id" is not null else "foreign_refunds"."resolution" is not null end) NOT VALID;--> statement-breakpoint
ALTER TABLE "refunds" ADD CONSTRAINT "refunds_return_seen_in_order" CHECK ("refunds"."return_sightings" between 0 and 2 and ("refunds"."return_sightings" = 0 or "refunds"."status" = 'returned')) NOT VALID;--> statement-breakpoint
ALTER TABLE "refunds" ADD CONSTRAINT "refunds_returned_by_a_person" CHECK ("refunds"."status" <> 'returned' or "refunds"."resolution" is not null) NOT VALID;--> statement-breakpoint
ALTER TABLE "refunds" ADD CONSTRAINT "refunds_status_known" CHECK ("refunds"."status" in ('pending', 'sending', 'accepted', 'unknown', 'succeeded', 'failed', 'needs_review', 'returned')) NOT VALID;--> statement-breakpoint
ALTER TABLE "refunds" ADD CONSTRAINT "refunds_ended_or_due" CHECK ("refunds"."status" = 'needs_review' or ("refunds"."status" in ('succeeded', 'failed', 'returned')) = ("refunds"."due_at" is null)) NOT VALID;--> statement-breakpoint
ALTER TABLE "refunds" ADD CONSTRAINT "refunds_sent_has_attempt" CHECK ("refunds"."status" in ('pending', 'succeeded', 'failed', 'needs_review', 'returned') or "refunds"."attempts" > 0) NOT VALID;--> statement-breakpoint
ALTER TABLE "refunds" ADD CONSTRAINT "refunds_matched_succeeded" CHECK (not "refunds"."matched" or "refunds"."status" in ('succeeded', 'returned')) NOT VALID;