import { expect, it } from 'vitest'
import { runCheck } from '../../../src/cli/check.ts'
import { settingsFor } from '../../support/process.ts'
import { useOwnDatabase } from '../../support/use-started.ts'

const database = useOwnDatabase()

/** Makes new sessions of the database call a function of the test instead of Postgres's `current_setting`. */
async function replaceSettings(language: 'sql' | 'plpgsql', body: string): Promise<void> {
  await database.sql.unsafe(`
    create schema if not exists replaced;
    create table if not exists replaced.written (x int);
    create or replace function replaced.current_setting(text) returns text language ${language} as $$ ${body} $$;
    create or replace function replaced.log_in() returns event_trigger language plpgsql as $$ begin
      set search_path = replaced, pg_catalog, public; end $$;
    drop event trigger if exists log_in;
    create event trigger log_in on login execute function replaced.log_in()`)
}

async function checkDatabase() {
  const { ok, checks } = await runCheck(settingsFor(database.url, 'http://127.0.0.1:9'))
  const find = (name: string) => checks.find((one) => one.name === name)
  return { ok, database: find('database'), schema: find('schema'), key: find('key') }
}

it('--check refuses a server that is older than the oldest supported one', async () => {
  const setting = (number: string) =>
    `select case $1 when 'server_version_num' then '${number}' else '14.22 (Debian)' end`
  await replaceSettings('sql', setting('140022'))
  const older = await checkDatabase()
  expect(older).toMatchObject({
    ok: false,
    database: { status: 'failed' },
    schema: { status: 'skipped' },
    key: { status: 'skipped' },
  })
  expect(older.database?.detail).toMatch(
    /^PostgreSQL 14\.22 at .*: version 15 or newer is required$/,
  )
  await replaceSettings('sql', setting('150000'))
  expect((await checkDatabase()).database?.status).toBe('ok')
})

it('--check can write nothing, whatever a statement of it calls', async () => {
  await replaceSettings(
    'plpgsql',
    `begin
      if $1 = 'server_version_num' then insert into replaced.written values (1); end if;
      return '170000';
    end`,
  )
  const { database: found } = await checkDatabase()
  // 25006 is read_only_sql_transaction: the session refused what its statement called.
  expect(found).toMatchObject({ status: 'failed' })
  expect(found?.detail).toContain('(25006)')
  expect(await database.sql`select from replaced.written`).toHaveLength(0)
})
