ALTER TABLE "webhook_endpoints" ADD COLUMN "key_chain_id" uuid;--> statement-breakpoint
-- A table of some hundred rows.
-- squawk-ignore require-concurrent-index-creation
CREATE INDEX "api_keys_chain" ON "api_keys" USING btree (coalesce("chain_id", "id"));