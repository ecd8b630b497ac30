import type { Sql } from '../platform/postgres/types.ts'

/** What Postgres keeps in memory before it writes a temporary file; its least. */
const MEMORY = '64kB'
/** They fill a file of 280 kB: more than is left where a table cannot grow. */
const ROWS = 20_000

/**
 * Fails where the database cannot write. A read-only server refuses an update, even one of no row, and the pool then opens
 * its sessions anew. A server without free space accepts that update, and goes on committing while its log has room: so the
 * rows of a count are written to a temporary file beside the tables, which leaves nothing behind.
 * @throws database errors
 */
export async function proveWrites(sql: Sql): Promise<void> {
  await sql.unsafe(
    `update merchant_accounts set hold = hold where false;
    set local work_mem = '${MEMORY}'; set local temp_tablespaces = '';
    select count(*) from generate_series(1, ${ROWS})`,
  )
}
