ALTER TABLE "ipn_events" DROP CONSTRAINT "ipn_events_fingerprint";--> statement-breakpoint
DROP INDEX "ipn_events_transaction";--> statement-breakpoint
ALTER TABLE "ipn_events" ADD CONSTRAINT "ipn_events_fingerprint" UNIQUE NULLS NOT DISTINCT("merchant_code","transaction_id","fingerprint");