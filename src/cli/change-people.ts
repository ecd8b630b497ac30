import { addPerson, endPerson, findPeople, type Person } from '../access/people.ts'
import type { Role } from '../access/roles.ts'
import { createSignInLink, formatSignInUrl } from '../access/sign-in.ts'
import { DomainError } from '../errors.ts'
import { runInTransaction } from '../platform/postgres/transaction.ts'
import type { Sql, Tx } from '../platform/postgres/types.ts'
import { type EndedEndpoint, endEndpointsOfPerson } from '../webhooks/end-endpoints.ts'
import { recordChange, requireMerchant } from './change-keys.ts'

/** The options of `people add`. */
export type AddPersonOptions = { role: Role[]; merchant: string[]; email?: string }

/** A person with a new sign-in link; the time is ISO 8601. */
export type InvitedPerson = Person & { link: string; linkExpiresAt: string }

/**
 * Adds a person, with a sign-in link.
 * @param baseUrl the origin of the console
 * @throws UsageError if an account does not exist, DomainError if another person has the name or the e-mail address
 */
export async function addNamedPerson(
  sql: Sql,
  name: string,
  { role: roles, merchant: merchants, email }: AddPersonOptions,
  baseUrl: string,
): Promise<InvitedPerson> {
  return await runInTransaction(sql, async (tx) => {
    for (const code of merchants) await requireMerchant(tx, code)
    const added = await addPerson(tx, { name, email: email ?? null, roles, merchants })
    if (added.kind === 'taken') {
      const what = added.by === 'name' ? 'name' : 'e-mail address'
      throw new DomainError('invalid_request', `another person has this ${what}; see people list`)
    }
    await recordChange(tx, 'people add', null, added.id)
    const { kind: _, ...person } = added
    return await invite(tx, person, baseUrl)
  })
}

/** Makes another sign-in link. @throws DomainError if there is no such person */
export async function linkPerson(sql: Sql, ref: string, baseUrl: string): Promise<InvitedPerson> {
  return await runInTransaction(sql, async (tx) => invite(tx, await findOne(tx, ref), baseUrl))
}

async function invite(tx: Tx, person: Person, baseUrl: string): Promise<InvitedPerson> {
  const link = await createSignInLink(tx, person.id)
  await recordChange(tx, 'people link', null, person.id)
  return { ...person, link: formatSignInUrl(baseUrl, link), linkExpiresAt: link.expiresAt }
}

/** Ends a person's access, and the webhook endpoints that belong to the person. @throws DomainError if there is no such person */
export async function removePerson(
  sql: Sql,
  ref: string,
): Promise<Person & { endpoints: EndedEndpoint[] }> {
  return await runInTransaction(sql, async (tx) => {
    const person = await findOne(tx, ref)
    await endPerson(tx, person.id)
    await recordChange(tx, 'people remove', null, person.id)
    return { ...person, endpoints: await endEndpointsOfPerson(tx, person.id) }
  })
}

/** @param ref a name or an e-mail address */
async function findOne(tx: Tx, ref: string): Promise<Person> {
  const [person, second] = await findPeople(tx, ref)
  if (!person) {
    const detail = 'no person has this name or e-mail address; see people list'
    throw new DomainError('not_found', detail)
  }
  if (!second) return person
  const detail = 'this is the name of one person and the e-mail address of another'
  throw new DomainError('invalid_request', detail)
}
