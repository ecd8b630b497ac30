import { toIso } from '../platform/postgres/row-set.ts'
import type { Sql, Tx } from '../platform/postgres/types.ts'
import { type ApiKey, hashKey, UNLIMITED } from './keys.ts'
import { listScopes, ROLES, type Role } from './types.ts'

/** How long a session lasts without a request, and at most (minutes). */
export const IDLE_MINUTES = 30
export const SESSION_MINUTES = 12 * 60

/** Selects whether the row `s` of `sessions` is live, for use inside a statement. */
export function isLiveSession(sql: Sql | Tx) {
  return sql`(s.ended_at is null and s.expires_at > now()
    and s.last_used_at > now() - ${IDLE_MINUTES} * interval '1 minute')`
}

/** The session that a token names, with what the person may do now. */
export type StoredSession = {
  id: string
  isLive: boolean
  /** Its last recorded use is more than a minute ago. */
  isDueForRecord: boolean
  roles: readonly Role[]
  language: 'en' | 'vi' | null
  timeZone: string | null
  /** The person as an API key; its id is the person's. */
  person: ApiKey
}

type SessionRow = Omit<StoredSession, 'person' | 'roles'> &
  Pick<ApiKey, 'name' | 'merchants' | 'principal'> & { personId: string; roles: string[] }

/**
 * Finds the session with this token, also one that is over: it shows who worked in this browser. A session of a
 * person whose access has ended is not found.
 */
export async function findSession(sql: Sql, token: string): Promise<StoredSession | undefined> {
  const [row] = await sql<SessionRow[]>`
    select s.id, ${isLiveSession(sql)} as "isLive", s.person_id as "personId", p.name, p.roles, p.merchants, p.principal,
      p.language, p.time_zone as "timeZone", s.last_used_at < now() - interval '1 minute' as "isDueForRecord"
    from sessions as s join actors as p on p.id = s.person_id
    where s.token_hash = ${hashKey(token)} and p.ended_at is null`
  if (!row) return undefined
  const { personId: id, name, merchants, principal, roles: all, ...session } = row
  const roles = ROLES.filter((role) => all.includes(role))
  const scopes = listScopes(roles)
  return {
    ...session,
    roles,
    person: { ...UNLIMITED, id, name, merchants, principal, scopes, chainId: id },
  }
}

/** Records that a session is used, which keeps it from ending as idle. Once a minute is enough. */
export async function recordUse(sql: Sql, id: string): Promise<void> {
  await sql`
    update sessions as s set last_used_at = now()
    where id = ${id} and last_used_at < now() - interval '1 minute' and ${isLiveSession(sql)}`
}

/** @returns false if the person has no such session that has not ended */
export async function endSession(tx: Tx, personId: string, id: string): Promise<boolean> {
  const ended = await tx`
    update sessions set ended_at = now() where id = ${id} and person_id = ${personId} and ended_at is null
    returning id`
  return ended.length > 0
}

/** A live session, as its owner and admins see it. Times are ISO 8601. */
export type ListedSession = {
  id: string
  personId: string
  signedInAt: string
  lastUsedAt: string
  expiresAt: string
  address: string
  userAgent: string
}

/** How many sessions are listed at most. */
const MAX_LISTED = 500

/** Lists the live sessions of a person, or of everybody, the last used first. */
export async function listSessions(sql: Sql | Tx, personId?: string): Promise<ListedSession[]> {
  const rows = await sql<ListedSession[]>`
    select s.id, s.person_id as "personId", s.signed_in_at::text as "signedInAt",
      s.last_used_at::text as "lastUsedAt", s.expires_at::text as "expiresAt", s.address,
      s.user_agent as "userAgent"
    from sessions as s
    where ${isLiveSession(sql)} and ${personId === undefined ? sql`true` : sql`s.person_id = ${personId}`}
    order by s.last_used_at desc, s.id limit ${MAX_LISTED}`
  return rows.map((row) => ({
    ...row,
    signedInAt: toIso(row.signedInAt),
    lastUsedAt: toIso(row.lastUsedAt),
    expiresAt: toIso(row.expiresAt),
  }))
}
