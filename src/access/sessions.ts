import { randomBytes, randomUUID } from 'node:crypto'
import type { Database } from '../db/client.ts'
import { type actors, sessions } from '../db/schema.ts'
import { nameNetwork } from '../http/client-address.ts'
import type { Rate, RateLimiter } from '../platform/concurrency/rate-limiter.ts'
import { listColumns, toIso, withIso } from '../platform/postgres/row-set.ts'
import { runInTransaction } from '../platform/postgres/transaction.ts'
import type { Sql, Tx } from '../platform/postgres/types.ts'
import type { Log } from '../platform/telemetry/log.ts'
import { recordEntry } from './audit.ts'
import { type ApiKey, hashKey, listKeyColumns } from './keys.ts'
import { LIVE_SESSION_SQL, lockPeople } from './principal.ts'
import { listScopes, ROLES } from './types.ts'

/** How long a session lasts at most, and for how long a sign-in link is valid (minutes). */
export const SESSION_MINUTES = 12 * 60
export const LINK_MINUTES = 10

/**
 * Failed sign-ins of a network, and all sign-ins of a person. As the token of a link has 256 random bits, this limits
 * the load and the log, not the chance of a guess.
 */
export const FAILURES_OF_NETWORK: Rate = { perMinute: 10, burst: 10 }
export const SIGN_INS_OF_PERSON: Rate = { perMinute: 20, burst: 20 }

export type SignInLink = { token: string; expiresAt: string }

/** Creates a session that its link opens once. Only the hash of the link's token is stored. */
export async function createSignInLink(tx: Tx, personId: string): Promise<SignInLink> {
  const token = generateToken()
  const [row] = await tx<{ expiresAt: string }[]>`
    insert into sessions (id, person_id, link_hash, link_until)
    values (${randomUUID()}, ${personId}, ${hashKey(token)}, now() + ${LINK_MINUTES} * interval '1 minute')
    returning link_until as "expiresAt"`
  if (!row) throw new Error('no sign-in link was stored')
  return { token, expiresAt: toIso(row.expiresAt) }
}

/** @param baseUrl the public origin of the console */
export const formatSignInUrl = (baseUrl: string, { token }: SignInLink) =>
  `${baseUrl}/console/sign-in/${token}`

/** A request with the token of a link. `replaces` is the token of the browser's session so far, which ends. */
type SignInRequest = Record<'token' | 'address' | 'userAgent' | 'requestId', string> & {
  replaces?: string | undefined
}

type SignInResult =
  | { kind: 'opened'; token: string; personId: string }
  | { kind: 'refused' }
  | { kind: 'limited'; waitMs: number }

type SignInContext = { db: Pick<Database, 'sql'>; log: Log; rates: RateLimiter }

/**
 * Opens a session with the token of a link. Nobody knows the session's token in advance, as it is always new.
 * @returns `refused` if the token is unknown, used or expired, or the access of its person has ended
 */
export async function signIn(ctx: SignInContext, request: SignInRequest): Promise<SignInResult> {
  const result = await tryLink(ctx, request)
  if (result.kind !== 'refused') return result
  // Failures limit only failures: behind an unlisted proxy everybody is one network, and wrong links of one person
  // must not keep the others out.
  const network = `network ${nameNetwork(request.address)}`
  const { ok, waitMs } = ctx.rates.take(network, FAILURES_OF_NETWORK)
  return ok ? result : { kind: 'limited', waitMs }
}

async function tryLink(ctx: SignInContext, request: SignInRequest): Promise<SignInResult> {
  const { db, rates, log } = ctx
  // This is no transaction, so that a guess costs only one statement.
  const [invited] = await db.sql<{ id: string; name: string; replacedId: string | null }[]>`
    select p.id, p.name,
      (select person_id from sessions where token_hash = ${hashKey(request.replaces ?? '')}) as "replacedId"
    from sessions as s join actors as p on p.id = s.person_id
    where s.link_hash = ${hashKey(request.token)} and s.signed_in_at is null and s.ended_at is null
      and s.link_until > now() and p.ended_at is null`
  if (!invited) return { kind: 'refused' }
  const { id: personId, name, replacedId } = invited
  const { ok, waitMs } = rates.take(`person ${personId}`, SIGN_INS_OF_PERSON)
  if (!ok) return { kind: 'limited', waitMs }
  const token = generateToken()
  const isOpened = await runInTransaction(db.sql, async (tx) => {
    await lockPeople(tx, [personId, replacedId ?? personId])
    // This statement is conditional, so a link opens only once. Whoever ends the access waits for the same lock.
    const [opened] = await tx<{ id: string }[]>`
      update sessions set token_hash = ${hashKey(token)}, signed_in_at = now(), last_used_at = now(),
        expires_at = now() + ${SESSION_MINUTES} * interval '1 minute', address = ${request.address},
        user_agent = ${clean(request.userAgent)}
      where link_hash = ${hashKey(request.token)} and signed_in_at is null and link_until > now() and ended_at is null
      returning id`
    if (!opened) return false
    if (request.replaces !== undefined) {
      await tx`
        update sessions set ended_at = now() where token_hash = ${hashKey(request.replaces)} and ended_at is null`
    }
    const actor = { id: personId, name, requestId: request.requestId }
    const write = { operation: 'sign in', merchantCode: null, objectId: opened.id }
    await recordEntry(tx, log, actor, write)
    return true
  })
  return isOpened ? { kind: 'opened', personId, token } : { kind: 'refused' }
}

/** The header comes from the client: this truncates it and removes what could break a line. */
const clean = (userAgent: string) =>
  userAgent
    .replaceAll(/\p{Cc}/gu, ' ')
    .toWellFormed()
    .slice(0, 200)
    .toWellFormed()

const generateToken = () => randomBytes(32).toString('base64url')

type Actor = typeof actors.$inferSelect

export type StoredSession = NonNullable<Awaited<ReturnType<typeof findSession>>>

/**
 * Finds a session by its token, even one that has ended, which tells who worked in this browser, but none of a person
 * whose access has ended. `person` has the form of an API key, with the id of the person.
 */
export async function findSession(sql: Sql, token: string) {
  type State = { sessionId: string; all: string[]; isLive: boolean; isDueForRecord: boolean }
  const [row] = await sql<(ApiKey & Pick<Actor, 'language' | 'timeZone'> & State)[]>`
    select s.id as "sessionId", ${sql.unsafe(LIVE_SESSION_SQL)} as "isLive",
      s.last_used_at < now() - interval '1 minute' as "isDueForRecord", p.language, p.time_zone as "timeZone",
      p.roles as "all", ${sql.unsafe(listKeyColumns('p'))}
    from sessions as s join actors as p on p.id = s.person_id
    where s.token_hash = ${hashKey(token)} and p.ended_at is null`
  if (!row) return undefined
  const { sessionId: id, isLive, isDueForRecord, language, timeZone, all, ...person } = row
  const roles = ROLES.filter((role) => all.includes(role))
  const session = { id, isLive, isDueForRecord, language, timeZone, roles }
  return { ...session, person: { ...person, scopes: listScopes(roles) } }
}

/** Records at most once a minute that a session is used, which keeps it from ending. */
export async function recordUse(sql: Sql, id: string): Promise<void> {
  await sql`
    update sessions as s set last_used_at = now()
    where id = ${id} and last_used_at < now() - interval '1 minute' and ${sql.unsafe(LIVE_SESSION_SQL)}`
}

/** The caller must have locked the person. @returns false if the person has no such session */
export async function endSession(tx: Tx, personId: string, id: string): Promise<boolean> {
  await tx`
    update sessions set ended_at = now() where id = ${id} and person_id = ${personId} and ended_at is null`
  const { count } = await tx`select from sessions where id = ${id} and person_id = ${personId}`
  return count > 0
}

const TIMES = ['signedInAt', 'lastUsedAt', 'expiresAt'] as const
const LISTED = ['id', ...TIMES, 'address', 'userAgent'] as const

/** Times are ISO 8601. */
export type ListedSession = Record<(typeof LISTED)[number], string>

/** Lists up to 500 live sessions of a person, the most recently used first. */
export async function listSessions(sql: Sql | Tx, personId: string): Promise<ListedSession[]> {
  const rows = await sql<ListedSession[]>`
    select ${sql.unsafe(listColumns(sessions, 's', LISTED))} from sessions as s
    where ${sql.unsafe(LIVE_SESSION_SQL)} and s.person_id = ${personId}
    order by s.last_used_at desc, s.id limit 500`
  return rows.map((row) => withIso(row, TIMES))
}
