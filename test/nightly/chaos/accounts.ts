import { createHash } from 'node:crypto'
import postgres from 'postgres'
import { SCOPES } from '../../../src/access/keys.ts'

/** One of two merchant accounts of one service, with a key that is bound to it. */
export type Account = { merchantCode: string; secret: string; key: string }

/** Their order systems use the same transaction ids, payment ids and idempotency keys. */
export const ACCOUNTS: readonly [Account, Account] = [
  {
    merchantCode: 'CHAOS1',
    secret: 'chaos-signing-secret-of-the-first',
    key: 'chaos-key-of-the-first-account-0123456789',
  },
  {
    merchantCode: 'CHAOS2',
    secret: 'chaos-signing-secret-of-the-second',
    key: 'chaos-key-of-the-second-account-0123456789',
  },
]

/** The content of their `MERCHANTS_FILE`. */
export function writeAccounts(): string {
  return JSON.stringify(ACCOUNTS.map(({ merchantCode, secret }) => ({ merchantCode, secret })))
}

/** Finds the key of an account. */
export function keyOf(merchantCode: string): string {
  const account = ACCOUNTS.find((one) => one.merchantCode === merchantCode)
  if (account === undefined) throw new Error(`no account ${merchantCode}`)
  return account.key
}

/** Stores the key of each account, with every scope. */
export async function storeKeys(databaseUrl: string): Promise<void> {
  const sql = postgres(databaseUrl, { max: 1, onnotice: () => {} })
  try {
    for (const { merchantCode, key } of ACCOUNTS) {
      const hash = createHash('sha256').update(key).digest()
      await sql`
        insert into actors (id, kind, name, folded_name, chain_id, hash, scopes, merchants)
        values (gen_random_uuid(), 'key', ${merchantCode}, ${merchantCode}, gen_random_uuid(), ${hash}, ${[...SCOPES]},
          ${[merchantCode]})`
    }
  } finally {
    await sql.end({ timeout: 1 })
  }
}
