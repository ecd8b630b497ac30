CREATE TABLE "api_key_minutes" (
	"key_id" uuid NOT NULL,
	"minute" timestamp with time zone NOT NULL,
	"reserved" bigint NOT NULL,
	"granted" bigint NOT NULL,
	"processes" text[] NOT NULL,
	CONSTRAINT "api_key_minutes_pkey" PRIMARY KEY("key_id","minute"),
	CONSTRAINT "api_key_minutes_reserved_positive" CHECK ("api_key_minutes"."reserved" > 0)
);
--> statement-breakpoint
CREATE INDEX "api_key_minutes_minute" ON "api_key_minutes" USING btree ("minute");--> statement-breakpoint
ALTER TABLE "api_keys" ADD COLUMN "networks" text[];--> statement-breakpoint
ALTER TABLE "api_keys" ADD COLUMN "last_used_at" timestamp with time zone;--> statement-breakpoint
ALTER TABLE "api_keys" ADD COLUMN "last_used_from" text;