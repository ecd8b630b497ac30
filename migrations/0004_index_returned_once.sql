CREATE INDEX CONCURRENTLY "refunds_returned_once" ON "refunds" USING btree ("merchant_code","resolved_at","refund_id") WHERE "status" = 'returned' and "return_sightings" < 2;
