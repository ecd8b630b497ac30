import type { Context } from '../context.ts'
import { protectBodyHash } from '../gateway/body-hmac.ts'

/** Rows per statement. */
const BATCH = 500

/** The bytes of a SHA-256. */
const HASH_BYTES = 32

type PlainRow = { id: number; hash: Buffer }

/**
 * Replaces the plain SHA-256 of requests that earlier releases stored with its HMAC, so that no reader of the
 * database can guess a signing secret from it. At most 500 rows of each table: the next round continues.
 * @returns the number of rows replaced
 */
export async function protectBodies(ctx: Pick<Context, 'sql' | 'encryption'>): Promise<number> {
  return (await protectTable(ctx, 'gateway_calls')) + (await protectTable(ctx, 'refund_attempts'))
}

async function protectTable(
  { sql, encryption }: Pick<Context, 'sql' | 'encryption'>,
  table: 'gateway_calls' | 'refund_attempts',
): Promise<number> {
  const rows = await sql<PlainRow[]>`
    select id, body_sha256 as hash from ${sql(table)} where body_key_id is null order by id limit ${BATCH}`
  if (rows.length === 0) return 0
  const replaced = rows.map(({ id, hash }) => {
    // Anything else is no hash that was sent: it is kept as it is, and no longer looked at.
    const isHash = hash.length === HASH_BYTES
    const { value, keyId } = isHash
      ? protectBodyHash(encryption, hash)
      : { value: hash, keyId: 'none' }
    return { id, value: `\\x${value.toString('hex')}`, keyId }
  })
  const written = await sql`
    update ${sql(table)} as t set body_sha256 = r.value::bytea, body_key_id = r."keyId"
    from json_to_recordset(${JSON.stringify(replaced)}::text::json) as r (id bigint, value text, "keyId" text)
    where t.id = r.id and t.body_key_id is null`
  return written.count
}
