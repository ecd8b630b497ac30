import { runInTransaction } from '../platform/postgres/transaction.ts'
import type { Sql, Tx } from '../platform/postgres/types.ts'
import { EVERY_MERCHANT } from './keys.ts'
import { addPerson, endPerson } from './people.ts'
import { createSignInLink, type SignInLink } from './sign-in.ts'

const ID = 'de300000-0000-4000-8000-000000000001'

/** Makes a sign-in link for the demo's admin. The sessions and links of an earlier demo end. */
export async function inviteDemoAdmin(sql: Sql): Promise<SignInLink> {
  return await runInTransaction(sql, async (tx) => {
    await endPerson(tx, ID)
    if (!(await revive(tx))) await add(tx)
    return await createSignInLink(tx, ID)
  })
}

/** What a start that is no demo ended. */
export type RetiredDemo = { keys: string[]; admin: boolean }

/**
 * Ends all access to a demo that ran on this database before: its keys, those they were rotated to, and its admin with
 * every session and link.
 */
export async function retireDemo(sql: Sql): Promise<RetiredDemo> {
  return await runInTransaction(sql, async (tx) => {
    const admin = await endPerson(tx, ID)
    const keys = await tx<{ id: string }[]>`
      update api_keys as k set revoked_at = now()
      where k.revoked_at is null and coalesce(k.chain_id, k.id) in (
        select id from api_keys where name = 'demo' and person is null and replaces is null)
      returning id`
    return { keys: keys.map(({ id }) => id), admin: admin !== undefined }
  })
}

async function revive(tx: Tx): Promise<boolean> {
  const revived = await tx`
    with person as (update people set ended_at = null where id = ${ID} returning key_id)
    update api_keys set revoked_at = null where id in (select key_id from person) returning id`
  return revived.length > 0
}

async function add(tx: Tx): Promise<void> {
  const roles = ['admin'] as const
  const person = { id: ID, name: 'Demo admin', email: null, roles, merchants: [EVERY_MERCHANT] }
  const { kind } = await addPerson(tx, person)
  if (kind === 'taken') throw new Error('another person is called Demo admin')
}
