import type { Sql } from '../../src/platform/postgres/types.ts'

/** Replaces, in the sessions of a database, the function that tells a setting; `true_setting` still tells the true one. */
export async function replaceSettings(
  sql: Sql,
  body: string,
  language: 'sql' | 'plpgsql' = 'sql',
): Promise<void> {
  await sql.unsafe('alter function pg_catalog.current_setting(text) rename to true_setting')
  await sql.unsafe(
    `create function pg_catalog.current_setting(text) returns text language ${language} as $$ ${body} $$`,
  )
}

/** Has the sessions of a database say of some settings what is given. */
export async function pretend(sql: Sql, settings: Record<string, string>): Promise<void> {
  const cases = Object.entries(settings).map(([name, value]) => `when '${name}' then '${value}'`)
  await replaceSettings(
    sql,
    `select case $1 ${cases.join(' ')} else pg_catalog.true_setting($1) end`,
  )
}

/** As they would commit behind a pooler that drops their settings. */
export const WEAK_COMMITS = { synchronous_commit: 'local' }

export async function endPretending(sql: Sql): Promise<void> {
  await sql.unsafe('drop function pg_catalog.current_setting(text)')
  await sql.unsafe('alter function pg_catalog.true_setting(text) rename to current_setting')
}
