-- Writes to a table wait while its index is built: about a second for each million rows.
-- squawk-ignore require-concurrent-index-creation
CREATE INDEX "payments_amount" ON "payments" USING btree ("merchant_code","amount" DESC NULLS FIRST,"first_seen_at" DESC NULLS FIRST,"payment_id" DESC NULLS FIRST);--> statement-breakpoint
-- squawk-ignore require-concurrent-index-creation
CREATE INDEX "refunds_amount" ON "refunds" USING btree ("merchant_code","amount" DESC NULLS FIRST,"requested_at" DESC NULLS FIRST,"refund_id" DESC NULLS FIRST);--> statement-breakpoint
-- squawk-ignore require-concurrent-index-creation
CREATE INDEX "refunds_requested_by" ON "refunds" USING btree ("merchant_code","requested_by" DESC NULLS FIRST,"requested_at" DESC NULLS FIRST,"refund_id" DESC NULLS FIRST);--> statement-breakpoint
-- squawk-ignore require-concurrent-index-creation
CREATE INDEX "refunds_notified_reference" ON "refunds" USING btree ("merchant_code","notified_reference") WHERE "refunds"."notified_reference" is not null;--> statement-breakpoint
-- squawk-ignore require-concurrent-index-creation
CREATE INDEX "refunds_gateway_refund" ON "refunds" USING btree ("merchant_code","gateway_refund_id") WHERE "refunds"."gateway_refund_id" is not null;--> statement-breakpoint
-- squawk-ignore require-concurrent-index-creation
CREATE INDEX "transactions_merchant_txn" ON "transactions" USING btree ("merchant_code","merchant_txn_id") WHERE "transactions"."merchant_txn_id" is not null;