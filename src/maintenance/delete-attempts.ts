import type { Config } from '../config/config.ts'
import type { Sql } from '../platform/postgres/types.ts'

/** How long attempts to deliver webhooks are kept, if `RETENTION_DAYS` is not less. */
const KEPT_DAYS = 30

/** Rows of one endpoint per statement. */
const BATCH = 200

/**
 * Deletes the oldest attempts of every webhook endpoint's log once they are too old: a batch of each, by primary key.
 * @returns the number of rows deleted; 0 when no expired one was left
 */
export async function deleteAttempts({
  sql,
  config,
}: {
  sql: Sql
  config: Pick<Config, 'RETENTION_DAYS'>
}): Promise<number> {
  const days = Math.min(KEPT_DAYS, config.RETENTION_DAYS)
  const removed = await sql`
    with expired as materialized (
      select a.place from webhook_endpoints as e cross join lateral (
        select ctid as place, sent_at from webhook_attempts as a
        where a.merchant_code = e.merchant_code and a.endpoint_id = e.id
        order by a.id limit ${sql.unsafe(String(BATCH))}) as a
      where a.sent_at < now() - ${days} * interval '1 day'
    )
    delete from webhook_attempts where ctid = any(array(select place from expired))`
  return removed.count
}
