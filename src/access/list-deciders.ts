import type { Sql } from '../platform/postgres/types.ts'
import { coversSql } from './principal.ts'

/** Few people decide; a longer list is cut. */
const MAX_NAMES = 100

/** Lists the people who may decide for an account (scope `ops`), by name. */
export async function listDeciders(sql: Sql, merchantCode: string): Promise<string[]> {
  const rows = await sql<{ name: string }[]>`
    select distinct on (lower(btrim(k.person))) k.person as name
    from (select ${merchantCode}::text as merchant_code) as m, api_keys as k
    where k.person is not null and 'ops' = any(k.scopes) and ${sql.unsafe(coversSql('m.merchant_code'))}
      and k.revoked_at is null and (k.expires_at is null or k.expires_at > now())
    order by lower(btrim(k.person)) limit ${MAX_NAMES}`
  return rows.map(({ name }) => name)
}
