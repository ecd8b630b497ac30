import type { Sql } from '../platform/postgres/types.ts'

/** Few people decide; a longer list is cut. */
const MAX_NAMES = 100

/** Lists the people who may decide for an account (scope `ops`), by name. */
export async function listDeciders(sql: Sql, merchantCode: string): Promise<string[]> {
  const rows = await sql<{ name: string }[]>`
    select distinct on (lower(btrim(person))) person as name from api_keys
    where person is not null and 'ops' = any(scopes) and merchant_code in ('*', ${merchantCode})
      and revoked_at is null and (expires_at is null or expires_at > now())
    order by lower(btrim(person)) limit ${MAX_NAMES}`
  return rows.map(({ name }) => name)
}
