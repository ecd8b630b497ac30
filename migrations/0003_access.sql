CREATE TABLE "audit_entries" (
	"id" bigserial PRIMARY KEY NOT NULL,
	"at" timestamp with time zone DEFAULT now() NOT NULL,
	"key_id" uuid,
	"actor" text NOT NULL,
	"operation" text NOT NULL,
	"merchant_code" text,
	"object_id" text,
	"request_id" text,
	"outcome" text NOT NULL
);
--> statement-breakpoint
ALTER TABLE "api_keys" ADD COLUMN "rate_per_minute" integer;--> statement-breakpoint
ALTER TABLE "api_keys" ADD COLUMN "replaces" uuid;--> statement-breakpoint
ALTER TABLE "api_keys" ADD COLUMN "chain_id" uuid;--> statement-breakpoint
CREATE INDEX "audit_entries_object" ON "audit_entries" USING btree ("object_id");--> statement-breakpoint
ALTER TABLE "api_keys" ADD CONSTRAINT "api_keys_replaced_once" UNIQUE("replaces");--> statement-breakpoint
ALTER TABLE "api_keys" ADD CONSTRAINT "api_keys_rate_positive" CHECK ("api_keys"."rate_per_minute" > 0);--> statement-breakpoint
ALTER TABLE "api_keys" ADD CONSTRAINT "api_keys_chain_whole" CHECK (("api_keys"."replaces" is null) = ("api_keys"."chain_id" is null));