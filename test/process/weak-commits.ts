import type { Sql } from '../../src/platform/postgres/types.ts'

/** Has the sessions of a database say that they commit as they would behind a pooler that drops their settings. */
export async function pretendWeakCommits(sql: Sql): Promise<void> {
  await sql.unsafe('alter function pg_catalog.current_setting(text) rename to true_setting')
  await sql.unsafe(`
    create function pg_catalog.current_setting(text) returns text language sql as
    $$select case $1 when 'synchronous_commit' then 'local' else pg_catalog.true_setting($1) end$$`)
}

export async function endPretending(sql: Sql): Promise<void> {
  await sql.unsafe('drop function pg_catalog.current_setting(text)')
  await sql.unsafe('alter function pg_catalog.true_setting(text) rename to current_setting')
}
