import type { StoredHold } from '../payments/view.ts'
import type { Sql } from '../platform/postgres/types.ts'

/** Reads the hold of a merchant account; null when it is not held, or unknown. */
export async function readAccountHold(sql: Sql, merchantCode: string): Promise<StoredHold> {
  const [row] = await sql<{ hold: StoredHold }[]>`
    select hold from merchant_accounts where merchant_code = ${merchantCode}`
  return row?.hold ?? null
}
