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

/** Ends the access of the demo's admin, where a demo ran on this database before. */
export async function retireDemoAdmin(sql: Sql): Promise<void> {
  await runInTransaction(sql, (tx) => endPerson(tx, ID))
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
