CREATE TABLE "people" (
	"id" uuid PRIMARY KEY DEFAULT gen_random_uuid() NOT NULL,
	"name" text NOT NULL,
	"email" text,
	"folded_name" text NOT NULL,
	"folded_email" text,
	"roles" text[] NOT NULL,
	"merchants" text[] NOT NULL,
	"key_id" uuid NOT NULL,
	"created_at" timestamp with time zone DEFAULT now() NOT NULL,
	"ended_at" timestamp with time zone,
	CONSTRAINT "people_have_roles" CHECK (cardinality("people"."roles") > 0),
	CONSTRAINT "people_have_merchants" CHECK (cardinality("people"."merchants") > 0)
);
--> statement-breakpoint
CREATE TABLE "sessions" (
	"id" uuid PRIMARY KEY DEFAULT gen_random_uuid() NOT NULL,
	"token_hash" "bytea" NOT NULL,
	"person_id" uuid NOT NULL,
	"created_at" timestamp with time zone DEFAULT now() NOT NULL,
	"signed_in_at" timestamp with time zone DEFAULT now() NOT NULL,
	"last_used_at" timestamp with time zone DEFAULT now() NOT NULL,
	"expires_at" timestamp with time zone NOT NULL,
	"address" text NOT NULL,
	"user_agent" text NOT NULL,
	"ended_at" timestamp with time zone,
	CONSTRAINT "sessions_token" UNIQUE("token_hash"),
	CONSTRAINT "sessions_token_is_sha256" CHECK (length("sessions"."token_hash") = 32)
);
--> statement-breakpoint
CREATE TABLE "sign_in_attempts" (
	"subject" text NOT NULL,
	"minute" timestamp with time zone NOT NULL,
	"attempts" bigint NOT NULL,
	CONSTRAINT "sign_in_attempts_pkey" PRIMARY KEY("subject","minute"),
	CONSTRAINT "sign_in_attempts_not_negative" CHECK ("sign_in_attempts"."attempts" >= 0)
);
--> statement-breakpoint
CREATE TABLE "sign_in_links" (
	"token_hash" "bytea" NOT NULL,
	"person_id" uuid NOT NULL,
	"created_at" timestamp with time zone DEFAULT now() NOT NULL,
	"expires_at" timestamp with time zone NOT NULL,
	"used_at" timestamp with time zone,
	CONSTRAINT "sign_in_links_pkey" PRIMARY KEY("token_hash"),
	CONSTRAINT "sign_in_links_hash_is_sha256" CHECK (length("sign_in_links"."token_hash") = 32)
);
--> statement-breakpoint
CREATE UNIQUE INDEX "people_name" ON "people" USING btree ("folded_name") WHERE "people"."ended_at" is null;--> statement-breakpoint
CREATE UNIQUE INDEX "people_email" ON "people" USING btree ("folded_email") WHERE "people"."ended_at" is null;--> statement-breakpoint
CREATE UNIQUE INDEX "people_key" ON "people" USING btree ("key_id");--> statement-breakpoint
CREATE INDEX "sessions_person" ON "sessions" USING btree ("person_id");