import type { Config } from '../../config/config.ts'
import { countPending, MIGRATE_COMMAND } from '../../db/describe-pending.ts'
import { MigrationError } from '../../db/migration-error.ts'
import { readPendingMigrations } from '../../db/pending-migrations.ts'
import { readSchemaName } from '../../db/read-schema-name.ts'
import { requireKnownSchema } from '../../db/require-known-schema.ts'
import type { Sql } from '../../platform/postgres/types.ts'
import type { Finding } from './types.ts'

/** Compares the migrations that the database has with those of this version. */
export async function checkSchema(
  sql: Sql,
  { MIGRATE }: Pick<Config, 'MIGRATE'>,
): Promise<Finding> {
  const name = 'schema'
  const refusal = await requireKnownSchema(sql).catch((error: unknown) => {
    if (error instanceof MigrationError) return error.message
    throw error
  })
  if (refusal !== undefined) return { name, status: 'failed', detail: refusal }
  const schema = await readSchemaName(sql)
  const pending = await readPendingMigrations(sql)
  if (pending.length === 0) return { name, status: 'ok', detail: schema ?? 'empty' }
  const what = `${countPending(pending)}, up to ${pending.at(-1)}`
  if (MIGRATE === 'auto') return { name, status: 'ok', detail: `${what}: the start applies them` }
  const detail = `${what}, and MIGRATE is off: run ${MIGRATE_COMMAND}, or set MIGRATE=auto`
  return { name, status: 'failed', detail }
}
