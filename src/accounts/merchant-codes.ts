import type { Config } from '../config/config.ts'
import { merchantAccounts } from '../db/schema.ts'
import { build } from '../platform/postgres/drizzle.ts'
import type { Sql } from '../platform/postgres/types.ts'

/** Lists the configured accounts. Only these can be queried, as only their secrets are known. */
export function listMerchantCodes({ accounts }: Pick<Config, 'accounts'>): string[] {
  return accounts.map(({ merchantCode }) => merchantCode)
}

/** Stores the configured accounts. @returns every account that was ever configured */
export async function registerMerchantCodes(
  sql: Sql,
  config: Pick<Config, 'accounts'>,
): Promise<string[]> {
  await build(sql)
    .insert(merchantAccounts)
    .values(listMerchantCodes(config).map((merchantCode) => ({ merchantCode })))
    .onConflictDoNothing()
  const rows = await sql<{ merchantCode: string }[]>`
    select merchant_code as "merchantCode" from merchant_accounts order by merchant_code`
  return rows.map(({ merchantCode }) => merchantCode)
}
