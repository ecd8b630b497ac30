CREATE TABLE "audit_chains" (
	"merchant_code" text NOT NULL,
	"start_position" bigint NOT NULL,
	"start_hash" "bytea" NOT NULL,
	"head_position" bigint NOT NULL,
	"head_hash" "bytea" NOT NULL,
	"head_at" timestamp with time zone NOT NULL,
	"mac" "bytea" NOT NULL,
	"mac_key_id" text NOT NULL,
	CONSTRAINT "audit_chains_pkey" PRIMARY KEY("merchant_code"),
	CONSTRAINT "audit_chains_in_order" CHECK ("audit_chains"."start_position" >= 0 and "audit_chains"."head_position" >= "audit_chains"."start_position")
);
--> statement-breakpoint
CREATE TABLE "audit_links" (
	"merchant_code" text NOT NULL,
	"position" bigint NOT NULL,
	"entry_id" bigint NOT NULL,
	"hash" "bytea" NOT NULL,
	CONSTRAINT "audit_links_pkey" PRIMARY KEY("merchant_code","position"),
	CONSTRAINT "audit_links_hash_is_sha256" CHECK (length("audit_links"."hash") = 32)
);
--> statement-breakpoint
CREATE TABLE "audit_progress" (
	"only" boolean PRIMARY KEY DEFAULT true NOT NULL,
	"done_up_to" bigint NOT NULL,
	"next_up_to" bigint NOT NULL,
	"next_xid" bigint NOT NULL,
	"chained_at" timestamp with time zone NOT NULL,
	CONSTRAINT "audit_progress_one_row" CHECK ("audit_progress"."only")
);
--> statement-breakpoint
CREATE INDEX "audit_links_entry" ON "audit_links" USING btree ("entry_id");