import { randomUUID } from 'node:crypto'
import { eq } from 'drizzle-orm'
import { z } from 'zod'
import { timeZone } from '../config/setting-types.ts'
import { actors } from '../db/schema.ts'
import { build } from '../platform/postgres/drizzle.ts'
import { toIso } from '../platform/postgres/row-set.ts'
import type { Sql, Tx } from '../platform/postgres/types.ts'
import { EVERY_MERCHANT } from './keys.ts'
import { foldName } from './principal.ts'
import { isLiveSession } from './sessions.ts'
import type { Access, Role } from './types.ts'

/** The name of a person, as it stands in the audit log: 1 to 140 printable characters. */
export const PersonName = z
  .string()
  .trim()
  .normalize('NFC')
  .regex(/^[^\p{Cc}\p{Cf}]{1,140}$/u)
  .refine((name) => name.isWellFormed())
  // The key of the demo has this name.
  .refine((name) => !['', 'demo'].includes(foldName(name)))

export const PersonEmail = z.email().max(254)

/** The languages that a person can have. */
export const LANGUAGES = ['en', 'vi'] as const

export const TimeZone = timeZone()

/** A person whose access has not ended. */
export type Person = {
  id: string
  name: string
  email: string | null
  roles: string[]
  /** Merchant codes, or `*` for all accounts. */
  merchants: string[]
  /** Null for what the console shows to everybody. */
  language: (typeof LANGUAGES)[number] | null
  timeZone: string | null
}

export type NewPerson = Pick<Person, 'name' | 'email'> & {
  roles: readonly Role[]
  merchants: readonly string[]
  /** Left out, it is made up. */
  id?: string
  language?: Person['language']
  timeZone?: Person['timeZone']
}

export type AddedPerson = ({ kind: 'added' } & Person) | { kind: 'taken'; by: 'name' | 'email' }

const PERSON = {
  id: actors.id,
  name: actors.name,
  email: actors.email,
  roles: actors.roles,
  merchants: actors.merchants,
  language: actors.language,
  timeZone: actors.timeZone,
}

const COLUMNS = 'p.id, p.name, p.email, p.roles, p.merchants, p.language, p.time_zone as "timeZone"'

/**
 * Adds a person, who is one principal with the API keys that were created for them.
 * @returns `taken` when another person has the name or the e-mail address
 */
export async function addPerson(tx: Tx, given: NewPerson): Promise<AddedPerson> {
  const { id = randomUUID(), name, email, roles, language = null, timeZone = null } = given
  const merchants = given.merchants.includes(EVERY_MERCHANT) ? [EVERY_MERCHANT] : given.merchants
  const foldedName = foldName(name)
  const [row] = await build(tx)
    .insert(actors)
    .values({
      ...{
        id,
        kind: 'person',
        chainId: id,
        name,
        foldedName,
        person: name,
        foldedPerson: foldedName,
      },
      ...{ email, foldedEmail: email === null ? null : foldName(email), language, timeZone },
      roles: [...new Set(roles)],
      merchants: [...new Set(merchants)],
    })
    .onConflictDoNothing()
    .returning(PERSON)
  if (row) return { kind: 'added', ...row }
  const named = await findPeople(tx, name)
  const isName = named.some((one) => foldName(one.name) === foldedName)
  return { kind: 'taken', by: isName ? 'name' : 'email' }
}

/** Finds who has this name or this e-mail address now. Two are possible: one person's name may be another's address. */
export async function findPeople(sql: Sql | Tx, nameOrEmail: string): Promise<Person[]> {
  const folded = foldName(nameOrEmail)
  return await sql<Person[]>`
    select ${sql.unsafe(COLUMNS)} from actors as p
    where kind = 'person' and ended_at is null and (folded_name = ${folded} or folded_email = ${folded}) order by id`
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
export type Reach = Pick<Access, 'coversAll' | 'merchants'>

/** Restricts the row `p` of `actors` to those whom an admin manages; without one, to no part of them. */
function isWithin(sql: Sql | Tx, reach: Reach | undefined) {
  if (reach === undefined || reach.coversAll) return sql`true`
  return sql`p.merchants <@ ${[...reach.merchants]}::text[]`
}

/** Finds a person whose access has not ended, by id. */
export async function findPerson(
  sql: Sql | Tx,
  id: string,
  reach: Reach,
): Promise<Person | undefined> {
  const [found] = await sql<Person[]>`
    select ${sql.unsafe(COLUMNS)} from actors as p
    where id = ${id} and kind = 'person' and ended_at is null and ${isWithin(sql, reach)}`
  return found
}

/** Lists people by name; those whose access has ended come last. */
export async function listPeople(sql: Sql | Tx, reach?: Reach): Promise<ListedPerson[]> {
  const rows = await sql<ListedPerson[]>`
    select ${sql.unsafe(COLUMNS)}, p.created_at::text as "createdAt",
      p.ended_at::text as "endedAt", count(s.id) as sessions, max(s.last_used_at)::text as "lastUsedAt"
    from actors as p left join sessions as s on s.person_id = p.id and ${isLiveSession(sql)}
    where p.kind = 'person' and ${isWithin(sql, reach)}
    group by p.id order by p.ended_at is not null, p.folded_name, p.id limit ${MAX_LISTED}`
  return rows.map((row) => ({
    ...row,
    createdAt: toIso(row.createdAt),
    endedAt: toIso(row.endedAt),
    lastUsedAt: toIso(row.lastUsedAt),
  }))
}

/** Changes how a person reads. */
export async function changeReading(
  tx: Tx,
  id: string,
  { language, timeZone }: Pick<Person, 'language' | 'timeZone'>,
): Promise<void> {
  await build(tx).update(actors).set({ language, timeZone }).where(eq(actors.id, id))
}

/**
 * Ends a person's access with every decision in progress, the sessions and the unused links.
 * @returns the person; undefined if the access has ended before
 */
export async function endPerson(tx: Tx, id: string): Promise<Person | undefined> {
  const [ended] = await tx<Person[]>`
    update actors as p set ended_at = now() where id = ${id} and kind = 'person' and ended_at is null
    returning ${tx.unsafe(COLUMNS)}`
  if (!ended) return undefined
  await tx`update sessions set ended_at = now() where person_id = ${id} and ended_at is null`
  return ended
}
