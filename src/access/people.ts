import { randomUUID } from 'node:crypto'
import { z } from 'zod'
import { timeZone } from '../config/setting-types.ts'
import { actors } from '../db/schema.ts'
import { build } from '../platform/postgres/drizzle.ts'
import { listColumns, withIso } from '../platform/postgres/row-set.ts'
import type { Sql, Tx } from '../platform/postgres/types.ts'
import { EVERY_MERCHANT } from './keys.ts'
import { foldName, LIVE_SESSION_SQL } from './principal.ts'
import type { Access, Role } from './types.ts'

/** The name of a person, as in the audit log: 1 to 140 printable characters. */
export const PersonName = z
  .string()
  .trim()
  .normalize('NFC')
  .regex(/^[^\p{Cc}\p{Cf}]{1,140}$/u)
  .refine((name) => name.isWellFormed())
  // The demo's API key is called `demo`.
  .refine((name) => !['', 'demo'].includes(foldName(name)))

export const PersonEmail = z.email().max(254)
export const LANGUAGES = actors.language.enumValues
export const TimeZone = timeZone()

type Actor = typeof actors.$inferSelect

const COLUMNS = ['id', 'name', 'email', 'roles', 'merchants', 'language', 'timeZone'] as const

/** A person whose access has not ended. */
export type Person = Pick<Actor, (typeof COLUMNS)[number]>

const PERSON = listColumns(actors, 'p', COLUMNS)

export type NewPerson = Pick<Person, 'name' | 'email'> &
  Partial<Pick<Person, 'id' | 'language' | 'timeZone'>> &
  Readonly<{ roles: readonly Role[]; merchants: readonly string[] }>

type AddedPerson = ({ kind: 'added' } & Person) | { kind: 'taken'; by: 'name' | 'email' }

/** A person is the same principal as the API keys created for them. */
export async function addPerson(tx: Tx, given: NewPerson): Promise<AddedPerson> {
  const { id = randomUUID(), name, email, language = null, timeZone = null } = given
  const roles = [...new Set(given.roles)]
  const coversAll = given.merchants.includes(EVERY_MERCHANT)
  const merchants = coversAll ? [EVERY_MERCHANT] : [...new Set(given.merchants)]
  const person: Person = { id, name, email, roles, merchants, language, timeZone }
  const foldedName = foldName(name)
  const added = await build(tx)
    .insert(actors)
    .values({
      ...{ ...person, kind: 'person', chainId: id, person: name },
      ...{ foldedName, foldedPerson: foldedName },
      foldedEmail: email && foldName(email),
    })
    .onConflictDoNothing()
    .returning({ id: actors.id })
  if (added.length > 0) return { kind: 'added', ...person }
  const named = await findPeople(tx, name)
  const isName = named.some((one) => foldName(one.name) === foldedName)
  return { kind: 'taken', by: isName ? 'name' : 'email' }
}

/** Finds people by name or e-mail address. There may be two: one person's name may be another's address. */
export async function findPeople(sql: Sql | Tx, nameOrEmail: string): Promise<Person[]> {
  const folded = foldName(nameOrEmail)
  return await sql<Person[]>`
    select ${sql.unsafe(PERSON)} from actors as p
    where kind = 'person' and ended_at is null and (folded_name = ${folded} or folded_email = ${folded}) order by id`
}

/** Times are ISO 8601. `sessions` is the number of live ones, and `lastUsedAt` when one of them was last used. */
export type ListedPerson = Person &
  Pick<Actor, 'createdAt' | 'endedAt' | 'lastUsedAt'> & { sessions: number }

type Reach = Pick<Access, 'coversAll' | 'merchants'>

/** Whether an admin has all accounts of the actor `p`, in SQL; without an admin, true. */
function isWithin(sql: Sql | Tx, reach: Reach | undefined) {
  if (reach === undefined || reach.coversAll) return sql`true`
  return sql`p.merchants <@ ${[...reach.merchants]}::text[]`
}

export async function findPerson(sql: Sql | Tx, id: string, reach: Reach, mayHaveEnded = false) {
  const [found] = await sql<Person[]>`
    select ${sql.unsafe(PERSON)} from actors as p
    where id = ${id} and kind = 'person' and (ended_at is null or ${mayHaveEnded}) and ${isWithin(sql, reach)}`
  return found
}

/** Lists up to a thousand people by name, those whose access has ended last. */
export async function listPeople(sql: Sql | Tx, reach?: Reach): Promise<ListedPerson[]> {
  const rows = await sql<ListedPerson[]>`
    select ${sql.unsafe(PERSON)}, p.created_at as "createdAt", p.ended_at as "endedAt", count(s.id) as sessions,
      max(s.last_used_at) as "lastUsedAt"
    from actors as p left join sessions as s on s.person_id = p.id and ${sql.unsafe(LIVE_SESSION_SQL)}
    where p.kind = 'person' and ${isWithin(sql, reach)}
    group by p.id order by p.ended_at is not null, p.folded_name, p.id limit 1000`
  return rows.map((row) => withIso(row, ['createdAt', 'endedAt', 'lastUsedAt']))
}

export type EndedKey = Readonly<Record<'id' | 'name' | 'merchantCode', string>>

/**
 * Ends the access of a person, including sessions, links, decisions in progress, and the API keys that were created
 * for them, as far as the admin has their accounts.
 * @returns the keys; undefined if the access had ended before
 */
export async function endPerson(
  tx: Tx,
  id: string,
  reach?: Reach,
): Promise<EndedKey[] | undefined> {
  const { count } = await tx`
    update actors set ended_at = now() where id = ${id} and kind = 'person' and ended_at is null`
  await tx`update sessions set ended_at = now() where person_id = ${id} and ended_at is null`
  // Somebody else may have the name by now.
  if (count === 0) return undefined
  const theirs = tx`p.kind = 'key' and p.folded_person = (select folded_person from actors where id = ${id})`
  // A key that is being rotated is waited for, so that its successor is found.
  await tx`select from actors as p where ${theirs} order by id for no key update`
  return await tx<EndedKey[]>`
    update actors as p set ended_at = now()
    where ${theirs} and p.ended_at is null and (p.expires_at is null or p.expires_at > now())
      and ${isWithin(tx, reach)}
    returning p.id, p.name, p.merchants[1] as "merchantCode"`
}
