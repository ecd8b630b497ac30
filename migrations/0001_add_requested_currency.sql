ALTER TABLE "refunds" ADD COLUMN "requested_currency" text;
