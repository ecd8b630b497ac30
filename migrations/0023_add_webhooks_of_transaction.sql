-- Writes to the table wait while its index is built: about a second for each million rows.
-- squawk-ignore require-concurrent-index-creation
CREATE INDEX "webhook_attempts_transaction" ON "webhook_attempts" USING btree ("merchant_code","transaction_id","id");