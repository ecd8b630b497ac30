CREATE TABLE "refund_reviews" (
	"merchant_code" text NOT NULL,
	"refund_id" uuid NOT NULL,
	"assignee" text,
	"notes" jsonb DEFAULT '[]'::jsonb NOT NULL,
	CONSTRAINT "refund_reviews_pkey" PRIMARY KEY("merchant_code","refund_id")
);
--> statement-breakpoint
-- Writes to a table wait while its index is built. Both have few rows.
-- squawk-ignore require-concurrent-index-creation
CREATE INDEX "discrepancies_open" ON "discrepancies" USING btree ("merchant_code","kind","at","id") WHERE "discrepancies"."resolved_at" is null;--> statement-breakpoint
-- squawk-ignore require-concurrent-index-creation
CREATE INDEX "refunds_waiting" ON "refunds" USING btree ("merchant_code","status",coalesce("last_sent_at", "requested_at"),"refund_id") WHERE "refunds"."status" in ('awaiting_approval', 'needs_review', 'accepted', 'unknown');