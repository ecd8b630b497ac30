CREATE TABLE "refund_reasons" (
	"merchant_code" text NOT NULL,
	"id" bigint GENERATED ALWAYS AS IDENTITY (sequence name "refund_reasons_id_seq" INCREMENT BY 1 MINVALUE 1 MAXVALUE 9223372036854775807 START WITH 1 CACHE 1),
	"label" text NOT NULL,
	"position" bigint NOT NULL,
	"created_at" timestamp with time zone DEFAULT now() NOT NULL,
	"ended_at" timestamp with time zone,
	CONSTRAINT "refund_reasons_pkey" PRIMARY KEY("merchant_code","id"),
	CONSTRAINT "refund_reasons_label_short" CHECK (char_length("refund_reasons"."label") between 1 and 80)
);
--> statement-breakpoint
CREATE INDEX "refund_reasons_offered" ON "refund_reasons" USING btree ("merchant_code","position") WHERE "refund_reasons"."ended_at" is null;--> statement-breakpoint
CREATE UNIQUE INDEX "refund_reasons_once" ON "refund_reasons" USING btree ("merchant_code",lower("label")) WHERE "refund_reasons"."ended_at" is null;