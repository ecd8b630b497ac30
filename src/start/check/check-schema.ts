import type { Config } from '../../config/config.ts'
import { countPending, MIGRATE_COMMAND } from '../../db/describe-pending.ts'
import { readPendingMigrations } from '../../db/pending-migrations.ts'
import { readSchemaName } from '../../db/read-schema-name.ts'
import type { Sql } from '../../platform/postgres/types.ts'
import type { Finding } from './types.ts'

/** Compares the migrations that the database has with those of this version. */
export async function checkSchema(
  sql: Sql,
  { MIGRATE }: Pick<Config, 'MIGRATE'>,
): Promise<Finding> {
  const name = 'schema'
  const schema = await readSchemaName(sql)
  const pending = await readPendingMigrations(sql)
  if (pending.length === 0) return { name, status: 'ok', detail: schema ?? 'empty' }
  const what = `${countPending(pending)}, up to ${pending.at(-1)}`
  if (MIGRATE === 'auto') return { name, status: 'ok', detail: `${what}: the start applies them` }
  const detail = `${what}, and MIGRATE is off: run ${MIGRATE_COMMAND}, or set MIGRATE=auto`
  return { name, status: 'failed', detail }
}
