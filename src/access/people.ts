import { randomUUID } from 'node:crypto'
import { z } from 'zod'
import { people } from '../db/schema.ts'
import { build } from '../platform/postgres/drizzle.ts'
import { toIso } from '../platform/postgres/row-set.ts'
import type { Sql, Tx } from '../platform/postgres/types.ts'
import { createKey, revokeKey } from './change-keys.ts'
import { EVERY_MERCHANT, UNLIMITED } from './keys.ts'
import { foldName } from './principal.ts'
import { isLiveSession } from './sessions.ts'
import { type Access, listScopes, type Role } from './types.ts'

/** The name of a person, as it stands in the audit log: 1 to 140 printable characters. */
export const PersonName = z
  .string()
  .trim()
  .normalize('NFC')
  .regex(/^[^\p{Cc}\p{Cf}]{1,140}$/u)
  .refine((name) => name.isWellFormed())
  // At every start the demo gives the key of this name a new text.
  .refine((name) => foldName(name) !== 'demo')

export const PersonEmail = z.email().max(254)

export type NewPerson = {
  /** Left out, it is made up. */
  id?: string
  name: string
  email: string | null
  roles: readonly Role[]
  /** Merchant codes, or `*` for all accounts. */
  merchants: readonly string[]
}

export type AddedPerson = ({ kind: 'added' } & Person) | { kind: 'taken'; by: 'name' | 'email' }

const PERSON = {
  id: people.id,
  name: people.name,
  email: people.email,
  roles: people.roles,
  merchants: people.merchants,
}

/** Stands in `api_keys` for several accounts: no merchant code is empty. */
const SEVERAL = ''

/**
 * Adds a person with a key of their own, whose text is dropped: no request can present it. It makes the person one
 * principal with the API keys that were created for them.
 * @returns `taken` when another person has the name or the e-mail address
 */
export async function addPerson(tx: Tx, given: NewPerson): Promise<AddedPerson> {
  const { id = randomUUID(), name, email, roles } = given
  const merchants = given.merchants.includes(EVERY_MERCHANT) ? [EVERY_MERCHANT] : given.merchants
  const keyId = randomUUID()
  const [row] = await build(tx)
    .insert(people)
    .values({
      ...{ id, name, email, keyId },
      foldedName: foldName(name),
      foldedEmail: email === null ? null : foldName(email),
      roles: [...new Set(roles)],
      merchants: [...new Set(merchants)],
    })
    .onConflictDoNothing()
    .returning(PERSON)
  if (!row) {
    const named = await findPeople(tx, name)
    const isName = named.some((one) => foldName(one.name) === foldName(name))
    return { kind: 'taken', by: isName ? 'name' : 'email' }
  }
  const [only = SEVERAL, ...others] = row.merchants
  await createKey(tx, {
    ...{ id: keyId, name, person: name, scopes: listScopes(roles), ...UNLIMITED },
    merchantCode: others.length > 0 ? SEVERAL : only,
    expiresAt: null,
  })
  return { kind: 'added', ...row }
}

/** A person whose access has not ended. */
export type Person = {
  id: string
  name: string
  email: string | null
  roles: string[]
  merchants: string[]
}

/** Finds who has this name or this e-mail address now. Two are possible: one person's name may be another's address. */
export async function findPeople(sql: Sql | Tx, nameOrEmail: string): Promise<Person[]> {
  const folded = foldName(nameOrEmail)
  return await sql<Person[]>`
    select id, name, email, roles, merchants from people
    where ended_at is null and (folded_name = ${folded} or folded_email = ${folded}) order by id`
}

/** Times are ISO 8601. */
export type ListedPerson = Person & {
  createdAt: string
  endedAt: string | null
  /** The live sessions, and when one of them was last used. */
  sessions: number
  lastUsedAt: string | null
}

/** How many people are listed at most. */
const MAX_LISTED = 1_000

/** The accounts of an admin, who manages the people that have no others. */
export type Reach = Pick<Access, 'merchantCode' | 'merchants'>

/** Restricts the row `p` of `people` to those whom an admin manages; without one, to no part of them. */
function isWithin(sql: Sql | Tx, reach: Reach | undefined) {
  if (reach === undefined || reach.merchantCode === EVERY_MERCHANT) return sql`true`
  return sql`p.merchants <@ ${[...reach.merchants]}::text[]`
}

/** Finds a person whose access has not ended, by id. */
export async function findPerson(
  sql: Sql | Tx,
  id: string,
  reach: Reach,
): Promise<Person | undefined> {
  const [found] = await sql<Person[]>`
    select id, name, email, roles, merchants from people as p
    where id = ${id} and ended_at is null and ${isWithin(sql, reach)}`
  return found
}

/** Lists people by name; those whose access has ended come last. */
export async function listPeople(sql: Sql | Tx, reach?: Reach): Promise<ListedPerson[]> {
  const rows = await sql<ListedPerson[]>`
    select p.id, p.name, p.email, p.roles, p.merchants, p.created_at::text as "createdAt",
      p.ended_at::text as "endedAt", count(s.id) as sessions, max(s.last_used_at)::text as "lastUsedAt"
    from people as p left join sessions as s on s.person_id = p.id and ${isLiveSession(sql)}
    where ${isWithin(sql, reach)}
    group by p.id order by p.ended_at is not null, p.folded_name, p.id limit ${MAX_LISTED}`
  return rows.map((row) => ({
    ...row,
    createdAt: toIso(row.createdAt),
    endedAt: toIso(row.endedAt),
    lastUsedAt: toIso(row.lastUsedAt),
  }))
}

/**
 * Ends a person's access: the sessions, the unused links and, with the key, every decision in progress.
 * @returns the person; undefined if the access has ended before
 */
export async function endPerson(tx: Tx, id: string): Promise<Person | undefined> {
  const [ended] = await tx<(Person & { keyId: string })[]>`
    update people set ended_at = now() where id = ${id} and ended_at is null
    returning id, name, email, roles, merchants, key_id as "keyId"`
  if (!ended) return undefined
  const { keyId, ...person } = ended
  await revokeKey(tx, keyId)
  await tx`update sessions set ended_at = now() where person_id = ${id} and ended_at is null`
  await tx`update sign_in_links set expires_at = now() where person_id = ${id} and expires_at > now()`
  return person
}
