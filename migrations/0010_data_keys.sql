CREATE TABLE "data_keys" (
	"purpose" text NOT NULL,
	"id" text NOT NULL,
	"wrapped" "bytea" NOT NULL,
	"active" boolean NOT NULL,
	"created_at" timestamp with time zone DEFAULT now() NOT NULL,
	CONSTRAINT "data_keys_pkey" PRIMARY KEY("purpose","id")
);
--> statement-breakpoint
ALTER TABLE "refunds" ADD COLUMN "fingerprint_key_id" text;--> statement-breakpoint
CREATE UNIQUE INDEX "data_keys_one_active" ON "data_keys" USING btree ("purpose") WHERE "data_keys"."active";