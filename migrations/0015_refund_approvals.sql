ALTER TABLE "refunds" DROP CONSTRAINT "refunds_status_known";--> statement-breakpoint
ALTER TABLE "refunds" DROP CONSTRAINT "refunds_ended_or_due";--> statement-breakpoint
ALTER TABLE "refunds" DROP CONSTRAINT "refunds_sent_has_attempt";--> statement-breakpoint
ALTER TABLE "api_keys" ADD COLUMN "person" text;--> statement-breakpoint
ALTER TABLE "refunds" ADD COLUMN "requested_principal" text;--> statement-breakpoint
ALTER TABLE "refunds" ADD COLUMN "on_behalf_of" text;--> statement-breakpoint
ALTER TABLE "refunds" ADD COLUMN "needs_approval" boolean DEFAULT false NOT NULL;--> statement-breakpoint
ALTER TABLE "refunds" ADD COLUMN "decided_by" text;--> statement-breakpoint
ALTER TABLE "refunds" ADD COLUMN "decided_principal" text;--> statement-breakpoint
ALTER TABLE "refunds" ADD COLUMN "decided_reason" text;--> statement-breakpoint
ALTER TABLE "refunds" ADD COLUMN "declined_at" timestamp with time zone;--> statement-breakpoint
ALTER TABLE "refunds" ADD COLUMN "approved_at" timestamp with time zone;--> statement-breakpoint
ALTER TABLE "refunds" ADD COLUMN "approved_fingerprint" "bytea";--> statement-breakpoint
ALTER TABLE "refunds" ADD COLUMN "approved_fingerprint_key_id" text;--> statement-breakpoint
ALTER TABLE "refunds" ADD COLUMN "self_decided" boolean DEFAULT false NOT NULL;--> statement-breakpoint
-- Not checked for existing rows: they satisfy the constraints with the defaults above.
ALTER TABLE "refunds" ADD CONSTRAINT "refunds_awaiting_undecided" CHECK ("refunds"."status" <> 'awaiting_approval' or ("refunds"."needs_approval" and "refunds"."decided_principal" is null)) NOT VALID;--> statement-breakpoint
ALTER TABLE "refunds" ADD CONSTRAINT "refunds_approved_before_sending" CHECK (not "refunds"."needs_approval" or "refunds"."approved_at" is not null or ("refunds"."attempts" = 0 and "refunds"."status" in ('awaiting_approval', 'succeeded', 'failed', 'needs_review', 'returned'))) NOT VALID;--> statement-breakpoint
ALTER TABLE "refunds" ADD CONSTRAINT "refunds_decided_by_another" CHECK ("refunds"."decided_principal" is null or ("refunds"."decided_principal" <> "refunds"."requested_principal" and ("refunds"."on_behalf_of" is null or lower(btrim("refunds"."on_behalf_of")) not in (lower(btrim("refunds"."decided_by")), "refunds"."decided_principal", regexp_replace("refunds"."decided_principal", '^[a-z]+:', '')))) is true) NOT VALID;--> statement-breakpoint
ALTER TABLE "refunds" ADD CONSTRAINT "refunds_decision_whole" CHECK (("refunds"."decided_principal" is null) = ("refunds"."decided_by" is null) and ("refunds"."decided_principal" is not null) = ("refunds"."approved_at" is not null or "refunds"."declined_at" is not null) and ("refunds"."approved_at" is null or "refunds"."declined_at" is null) and ("refunds"."approved_at" is null) = ("refunds"."approved_fingerprint" is null)) NOT VALID;--> statement-breakpoint
ALTER TABLE "refunds" ADD CONSTRAINT "refunds_status_known" CHECK ("refunds"."status" in ('awaiting_approval', 'pending', 'sending', 'accepted', 'unknown', 'succeeded', 'failed', 'needs_review', 'returned')) NOT VALID;--> statement-breakpoint
ALTER TABLE "refunds" ADD CONSTRAINT "refunds_ended_or_due" CHECK ("refunds"."status" = 'needs_review' or ("refunds"."status" in ('awaiting_approval', 'succeeded', 'failed', 'returned')) = ("refunds"."due_at" is null)) NOT VALID;--> statement-breakpoint
ALTER TABLE "refunds" ADD CONSTRAINT "refunds_sent_has_attempt" CHECK ("refunds"."status" in ('awaiting_approval', 'pending', 'succeeded', 'failed', 'needs_review', 'returned') or "refunds"."attempts" > 0) NOT VALID;